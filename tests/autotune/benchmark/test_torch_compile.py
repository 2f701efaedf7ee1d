"""What torch.compile is given is the operator; compiling it takes too long for a test."""

import numpy as np
import pytest

from autotune.benchmark.libraries.torch_compile import expressions
from search_spaces.hardware import cpu_hardware
from search_spaces.operator import Operator
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

torch = pytest.importorskip("torch")
CASES = [
    ("matmul", {"M": 5, "N": 6, "K": 7}),
    ("matmul", {"M": 5, "N": 6, "K": 7, "trans_b": 1}),
    ("linear", {"M": 5, "N": 6, "K": 7, "activation": 0, "bias": 0, "residual": 0}),
    ("linear", {"M": 5, "N": 6, "K": 7, "activation": 1, "bias": 1, "residual": 1}),
    ("linear", {"M": 5, "N": 6, "K": 7, "activation": 2, "bias": 0, "residual": 1}),
    ("linear", {"M": 5, "N": 6, "K": 7, "activation": 3, "bias": 1, "residual": 0}),
    ("gated_linear", {"M": 5, "N": 6, "K": 7}),
    ("attention", {"B": 1, "H": 4, "G": 2, "S": 9, "D": 16, "causal": 1}),
    ("softmax", {"M": 5, "N": 6}),
    ("rms_norm", {"M": 5, "N": 6}),
    ("rms_norm", {"M": 5, "N": 6, "residual": 1}),
    ("layer_norm", {"M": 5, "N": 6}),
    ("reduce", {"M": 5, "N": 6}),
    ("reduce", {"M": 5, "N": 6, "maximum": 1}),
    ("transpose", {"B": 2, "M": 5, "N": 6}),
    ("elementwise", {"M": 5, "N": 6}),
]


def task_of(operator, axes):
    workload = find_operator(operator).workload("llvm", "float32", **axes)
    return Task(operator, workload, Target("llvm"), cpu_hardware("cpu", 2, 1 << 20, 1e11, {"float32": 1e12}))


@pytest.mark.parametrize(("operator", "axes"), CASES)
def test_an_expression_computes_its_operator(operator, axes):
    task = task_of(operator, axes)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(t.shape) for t in task.operator.tensors(task.workload) if not t.output]
    expected = task.operator.reference(task.workload, np, *given)
    found = expressions(task, torch)[operator](*(torch.from_numpy(x).float() for x in given))
    results = found if isinstance(found, tuple) else (found,)
    for got, right in zip(results, expected, strict=True):
        np.testing.assert_allclose(got.numpy(), right, rtol=1e-4, atol=1e-5)


def test_every_expression_is_of_an_operator_that_is_there_and_tried():
    known = expressions(task_of("softmax", {"M": 5, "N": 6}), torch)
    assert {operator for operator, _ in CASES} == set(known)
    assert all(isinstance(find_operator(name), Operator) for name in known)
