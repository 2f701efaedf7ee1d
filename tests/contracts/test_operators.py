"""What every operator must keep."""

import array_api_compat
import numpy as np
import pytest

from autotune.inputs import filled
from search_spaces import registry
from search_spaces.errors import InvalidWorkload
from search_spaces.operator import EPSILON, ITEMSIZE, Operator
from search_spaces.task import OPERATORS, find_operator

KINDS = ("cuda", "llvm")


@pytest.fixture(params=registry.names(OPERATORS))
def operator(request):
    return find_operator(request.param)


def small(operator, flags=max):
    """A workload of few elements in float32; the sizes let query heads divide into groups."""
    sizes = {
        axis.name: flags(axis.choices) if axis.choices else max(size, axis.least)
        for axis, size in zip(operator.axes, (6, 4, 2, 10, 8, 6, 4, 2), strict=False)
    }
    try:
        return operator.workload("llvm", "float32", **sizes)
    except InvalidWorkload:
        # One whose axes hang together in a way of their own.
        chosen = {axis.name: flags(axis.choices) for axis in operator.axes if axis.choices}
        return operator.edge_workloads(operator.workload("llvm", "float32", **chosen))[0]


def inputs(operator, workload, dtype):
    rng = np.random.default_rng(0)
    made = [(t, filled(np, rng.standard_normal(t.shape), t)) for t in operator.tensors(workload) if not t.output]
    return [
        values.astype(t.dtype if dtype != np.float64 and t.dtype.startswith("int") else dtype) for t, values in made
    ]


def outputs(operator, workload):
    return [np.zeros(t.shape, t.dtype) for t in operator.tensors(workload) if t.output]


def rounding(right):
    """What float32 may lose of an element where others are as large as the largest."""
    return 1e-5 * max(1.0, float(np.abs(right).max()))


def test_it_is_described(operator):
    assert isinstance(operator, Operator)
    assert operator.name in registry.names(OPERATORS)
    assert operator.summary
    assert all(axis.meaning for axis in operator.axes)
    assert set(operator.dtypes) <= set(ITEMSIZE)
    assert set(operator.dtypes) <= set(EPSILON)


@pytest.mark.parametrize("kind", KINDS)
def test_its_defaults_are_valid(operator, kind):
    workload = operator.workload(kind)
    assert [name for name, _ in workload.axes] == [axis.name for axis in operator.axes]
    assert workload.dtype in operator.dtypes
    for dtype in operator.dtypes:
        assert operator.workload(kind, dtype).dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_come_first_and_outputs_last(operator, kind):
    tensors = operator.tensors(operator.workload(kind))
    written = [t.output for t in tensors]
    assert written == sorted(written)
    assert any(written)
    assert not all(written)
    assert len({t.name for t in tensors}) == len(tensors)
    assert all(t.bytes > 0 for t in tensors)


@pytest.mark.parametrize("kind", KINDS)
def test_its_odd_workloads_are_valid_small_and_odd(operator, kind):
    workload = operator.workload(kind)
    edges = operator.edge_workloads(workload)
    assert edges
    assert len(set(edges)) == len(edges)
    assert workload not in edges
    for edge in edges:
        assert operator.workload(kind, edge.dtype, **dict(edge.axes)) == edge
        assert edge.dtype == workload.dtype
        assert all(value <= whole for value, whole in zip(edge.values, workload.values, strict=True))
        assert sum(t.bytes for t in operator.tensors(edge)) <= 16e6
    assert any(value % 2 and value > 1 for value in edges[0].values)


@pytest.mark.parametrize("kind", KINDS)
def test_it_costs_something(operator, kind):
    workload = operator.workload(kind)
    cost = operator.cost(workload)
    assert cost.operations > 0
    assert cost.bytes >= max(t.bytes for t in operator.tensors(workload))
    assert operator.reduction_length(workload) >= 1


@pytest.mark.parametrize("flags", [min, max])
def test_the_reference_fits_the_tensors(operator, flags):
    workload = small(operator, flags)
    results = operator.reference(workload, np, *inputs(operator, workload, np.float64))
    assert [r.shape for r in results] == [t.shape for t in operator.tensors(workload) if t.output]
    assert all(r.dtype == np.float64 for r in results)
    assert all(np.isfinite(r).all() for r in results)


@pytest.mark.parametrize("flags", [min, max])
def test_the_numpy_library_agrees_with_the_reference(operator, flags):
    workload = small(operator, flags)
    given = inputs(operator, workload, np.float32)
    kept = [x.copy() for x in given]
    expected = operator.reference(workload, np, *(x.astype(np.float64) for x in given))
    written = outputs(operator, workload)
    for name, launch in operator.numpy_library(workload, np, given, written).items():
        for array in written:
            array.fill(np.nan if array.dtype.kind == "f" else -1)
        launch()
        for got, right in zip(written, expected, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=rounding(right), err_msg=name)
        launch()
        for got, right in zip(written, expected, strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-4, atol=rounding(right), err_msg=f"{name}, second call")
    for before, after in zip(kept, given, strict=True):
        np.testing.assert_array_equal(before, after)


def test_torch_gives_the_same_reference_and_library(operator):
    torch = pytest.importorskip("torch")
    workload = small(operator)
    given = inputs(operator, workload, np.float64)
    expected = operator.reference(workload, np, *given)
    tensors = [torch.from_numpy(x) for x in given]
    xp = array_api_compat.array_namespace(tensors[0])
    for got, right in zip(operator.reference(workload, xp, *tensors), expected, strict=True):
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-9, atol=1e-12)
    narrow = [torch.from_numpy(x) for x in inputs(operator, workload, np.float32)]
    written = [torch.from_numpy(x) for x in outputs(operator, workload)]
    for launch in operator.torch_library(workload, torch, narrow, written).values():
        returned = launch()
        got = returned if isinstance(returned, torch.Tensor) else written[0]
        np.testing.assert_allclose(got.numpy(), expected[0], rtol=1e-4, atol=rounding(expected[0]))


def test_its_te_definition_is_a_function_of_its_tensors(operator):
    te = pytest.importorskip("tvm.te")
    topi = pytest.importorskip("tvm.topi")
    for dtype in ("float32", "float16"):
        workload = operator.workload("llvm", dtype, **dict(small(operator).axes))
        arguments = operator.compute(workload, te, topi)
        if arguments is None:
            pytest.skip("no TE definition")
        tensors = operator.tensors(workload)
        assert [tuple(int(e) for e in a.shape) for a in arguments] == [t.shape for t in tensors]
        assert [str(a.dtype) for a in arguments] == [t.dtype for t in tensors]
        function = te.create_prim_func(list(arguments))
        assert len(function.params) == len(tensors)
