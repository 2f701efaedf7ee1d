"""What every library of a benchmark must keep."""

import numpy as np
import pytest

from autotune.benchmark.contest import LIBRARIES, library_names
from autotune.benchmark.libraries.base import Library
from autotune.inputs import filled
from search_spaces import registry
from search_spaces.hardware import cpu_hardware
from search_spaces.target import KINDS, Target
from search_spaces.task import OPERATORS, Task, find_operator


@pytest.fixture(params=registry.names(LIBRARIES))
def library(request):
    return registry.find(LIBRARIES, request.param, "library")


def small(name):
    """A task of few elements on a CPU."""
    operator = find_operator(name)
    whole = operator.workload("llvm")
    edge = operator.edge_workloads(whole)[0]
    return Task(name, edge, Target("llvm"), cpu_hardware("cpu", 2, 1 << 20, 1e11, {"float32": 1e12}))


def test_it_is_described(library):
    assert isinstance(library, Library)
    assert library.summary
    assert library.kinds
    assert set(library.kinds) <= set(KINDS)
    assert library.missing() is None or library.missing()


@pytest.mark.parametrize("operator", registry.names(OPERATORS))
@pytest.mark.parametrize("name", library_names("llvm", slow=False)[0])
def test_its_calls_agree_with_the_reference(name, operator):
    library = registry.find(LIBRARIES, name, "library")
    task = small(operator)
    rng = np.random.default_rng(0)
    specs = task.operator.tensors(task.workload)
    if not all(hasattr(np, t.dtype) for t in specs):
        pytest.skip("numpy has no such dtype")
    given = [filled(np, rng.standard_normal(t.shape), t).astype(t.dtype) for t in specs if not t.output]
    written = [np.zeros(t.shape, t.dtype) for t in specs if t.output]
    expected = task.operator.reference(task.workload, np, *(x.astype(np.float64) for x in given))
    for title, call in library.calls(task, given, written).items():
        returned = call()
        results = () if returned is None else returned if isinstance(returned, tuple) else (returned,)
        got = [*results, *written[len(results) :]]
        for one, right in zip(got, expected, strict=True):
            np.testing.assert_allclose(np.asarray(one), right, rtol=1e-3, atol=1e-4, err_msg=title)


@pytest.mark.parametrize("kind", KINDS)
def test_slow_ones_take_part_only_where_they_are_asked_for(kind):
    quick, absent = library_names(kind, slow=False)
    every, _ = library_names(kind, slow=True)
    assert set(quick) <= set(every)
    assert not set(quick) & set(absent)
    assert all(not registry.find(LIBRARIES, name, "library").slow for name in quick)
