"""Tolerances admit correct rounding and refuse narrower arithmetic; guards, inputs and distributions do their part."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.buffers import Buffers
from autotune.checking import Checker, tolerance
from autotune.devices.cpu import Cpu
from autotune.devices.cuda import Cuda
from autotune.inputs import Draw, alternating, distributions, huge, infinite, large, stored
from autotune.measurement import Policy
from autotune.tampering import Seal
from search_spaces import registry
from search_spaces.hardware import cpu_hardware
from search_spaces.operator import LARGEST, TensorSpec
from search_spaces.products import activated
from search_spaces.sketches.promotion import PREFERRED_TERMS
from search_spaces.target import Target
from search_spaces.task import OPERATORS, Task, find_operator


def deviation(output, reference, dtype, length):
    allowed = tolerance(dtype, length)
    return Cpu().deviation(output, reference, Cpu().allowance(reference, allowed.relative, allowed.of_rms))


@pytest.fixture(scope="module")
def product():
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((256, 1024)), rng.standard_normal((1024, 256)))
    return a.astype(np.float32), b.astype(np.float32)


def test_float32_blas_passes_with_room(product):
    a, b = product
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert deviation(a @ b, exact, "float32", 1024) < 0.5


def test_tf32_where_float32_was_asked_for_is_refused(product):
    a, b = product

    def tf32(x):
        return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)

    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert deviation(tf32(a) @ tf32(b), exact, "float32", 1024) > 1.0


def test_float16_rounding_passes_and_float16_accumulation_of_long_sums_does_not(product):
    a, b = (x.astype(np.float16) for x in product)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert deviation(exact.astype(np.float16), exact, "float16", 1024) < 0.5
    narrow = np.zeros((256, 256), dtype=np.float16)
    for k in range(1024):
        narrow += np.outer(a[:, k], b[k])
    assert deviation(narrow, exact, "float16", 1024) > 1.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_one_element_that_is_not_finite_is_seen(product, bad):
    a, b = product
    exact = a.astype(np.float64) @ b.astype(np.float64)
    output = a @ b
    output[13, 7] = bad
    assert deviation(output, exact, "float32", 1024) == float("inf")


def test_one_wrong_element_among_many_is_seen(product):
    a, b = product
    exact = a.astype(np.float64) @ b.astype(np.float64)
    output = a @ b
    output[13, 7] += 0.05
    assert deviation(output, exact, "float32", 1024) > 1.0


def test_an_infinite_element_has_one_name_on_every_device():
    torch = pytest.importorskip("torch")
    here = SimpleNamespace(_torch=torch, _device="cpu")
    for bad in (float("nan"), float("inf"), float("-inf")):
        output = torch.tensor([[1.0, bad], [2.0, 3.0]], dtype=torch.float16)
        assert Cuda.deviation(here, output, torch.ones(2, 2), torch.ones(2, 2)) == float("inf")


def sums_of_14_bits(a, b, promote):
    """a @ b.T by instructions of 32 terms, each cut below 13 bits of the largest that it adds, and of its sums so far.

    After each `promote` terms the sums go to float32 and start over; 0 for never.
    """
    whole, part = (np.zeros((len(a), len(b))) for _ in range(2))
    for k in range(0, a.shape[1], 32):
        terms = a[:, None, k : k + 32] * b[None, :, k : k + 32]
        terms = np.concatenate([part[..., None], terms], axis=-1)
        unit = 2.0 ** (np.floor(np.log2(np.abs(terms).max(axis=-1, keepdims=True))) - 13)
        part = (np.trunc(terms / unit) * unit).sum(axis=-1)
        if promote and (k + 32) % promote == 0:
            whole, part = whole + part, np.zeros_like(part)
    return whole + part


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_sums_of_fp8_are_refused_and_those_promoted_in_time_are_not(dtype):
    rng = np.random.default_rng(0)
    a, b = (alternating(Draw(np, rng.standard_normal((8, 4096)), i, 4096)) for i in range(2))
    a, b = (np.round(x * 8) / 8 for x in (a, b))
    exact = a @ b.T
    assert deviation(sums_of_14_bits(a, b, 0), exact, dtype, 4096) > 1.0
    assert deviation(sums_of_14_bits(a, b, PREFERRED_TERMS), exact, dtype, 4096) < 1.0


def test_zeros_are_compared_without_dividing_by_zero():
    assert deviation(np.zeros(4, np.float32), np.zeros(4), "float32", 4) == 0.0


def checker_of(operator, dtype="float32", **axes):
    workload = find_operator(operator).workload("llvm", dtype, **axes)
    hardware = cpu_hardware("test", 1, 1 << 20, 1e12, {"float32": 1e13})
    return Checker(Cpu(), Task(operator, workload, Target("llvm"), hardware), Policy())


def softmax(x, y, shifted=True):
    def launch():
        with np.errstate(over="ignore", invalid="ignore"):
            e = np.exp(x - (x.max(axis=-1, keepdims=True) if shifted else 0))
            y[...] = e / e.sum(axis=-1, keepdims=True)

    return launch


def test_a_byte_beside_a_buffer_is_seen_and_repaired():
    specs = TensorSpec("X", (3, 7), "float16"), TensorSpec("Y", (5,), "float32", output=True)
    buffers = Buffers(Cpu(), specs)
    (x,), (y,) = buffers.inputs, buffers.outputs
    kept = [x.copy()]
    assert x.ctypes.data % 64 == y.ctypes.data % 64 == 0
    assert buffers.fault(kept) == ""
    places = {
        "before its input X": x.ctypes.data - 1,
        "after its input X": x.ctypes.data + x.nbytes,
        "before its output Y": y.ctypes.data - 1,
        "after its output Y": y.ctypes.data + y.nbytes,
    }
    for where, address in places.items():
        ctypes.memset(address, 0, 1)
        assert buffers.fault(kept) == f"writes {where}"
        buffers.repair()
    x[2, 6] = 3.0 if x[2, 6] != 3.0 else 4.0
    assert buffers.fault(kept) == "writes to its input X"


def test_a_candidate_after_one_that_spoils_the_arguments_finds_them_as_they_were():
    checker = checker_of("softmax", M=8, N=64)
    (x,), (y,) = checker.inputs, checker.outputs
    before = x.copy()

    def spoil():
        x[...] = 0
        ctypes.memset(y.ctypes.data + y.nbytes, 0, 4)

    assert checker.check(spoil).fault
    assert checker.check(softmax(x, y)).fault == ""
    assert (x == before).all()
    assert checker.check(spoil).fault


def test_right_on_all_distributions_and_wrong_on_some():
    checker = checker_of("softmax", M=16, N=512)
    (x,), (y,) = checker.inputs, checker.outputs

    def without_infinities():
        softmax(x, y)()
        y[np.isinf(x)] = np.nan

    right, overflowing, no_mask = checker.check_distributions(
        [softmax(x, y), softmax(x, y, shifted=False), without_infinities]
    )
    assert right.fault == ""
    assert "'huge'" in overflowing.fault
    assert "'with infinities'" in no_mask.fault
    assert np.isinf(x).any()
    checker.restore()
    assert np.isfinite(x).all()


def test_an_operator_that_magnifies_rounding_is_not_refused_for_it():
    checker = checker_of("attention", S=64, H=2, D=32)
    task = checker.task
    (launch,) = task.operator.numpy_library(task.workload, np, checker.inputs, checker.outputs).values()
    assert checker.check(launch).fault == ""
    assert checker.check_distributions([launch])[0].fault == ""


def gated(a, b, up, c, largest=np.inf):
    def launch():
        gate, value = (a.astype(np.float32) @ side.astype(np.float32).T for side in (b, up))
        made = activated(gate, 3, np) * value
        c[...] = np.where(np.abs(made) > largest, np.copysign(np.inf, made), made)

    return launch


def test_outputs_that_float16_cannot_hold_are_avoided_and_never_excused():
    checker = checker_of("gated_linear", "float16", M=8, N=16, K=32768)
    inputs, (c,) = checker.inputs, checker.outputs
    rng = np.random.default_rng(0)
    unit = [rng.standard_normal(t.shape) for t in checker.inputs]
    reference = checker.task.operator.reference(checker.task.workload, np, *unit)
    assert np.abs(reference[0]).max() > LARGEST["float16"]
    assert 0.05 < np.std(inputs[0].astype(np.float32)) < 0.6
    right, early = gated(*inputs, c), gated(*inputs, c, largest=4096.0)
    assert checker.check(right).fault == ""
    assert checker.check(early).fault == "not finite"
    found = checker.check_distributions([right, early])
    assert found[0].fault == ""
    assert "not finite" in found[1].fault


@pytest.mark.parametrize("operator", registry.names(OPERATORS))
def test_every_operator_is_checked_where_its_outputs_fit(operator):
    made = find_operator(operator)
    workload = made.edge_workloads(made.workload("llvm"))[0]
    if "float16" not in made.dtypes or not all(hasattr(np, t.dtype) for t in made.tensors(workload)):
        pytest.skip("no float16 in numpy")
    checker = checker_of(operator, "float16", **dict(workload.axes))
    specs = [t for t in made.tensors(checker.task.workload) if not t.output]
    for kinds in distributions(made, checker.task.workload, specs).values():
        if huge not in kinds:
            _, reference = checker._fitting(kinds, 0)
            assert all(np.abs(r).max() <= LARGEST["float16"] for r in reference)


def test_integers_stay_whole_where_other_inputs_are_smaller():
    values = np.linspace(-40.0, 40.0, 101)
    assert np.array_equal(stored(np, values, "int8", 0.125), stored(np, values, "int8"))
    assert np.array_equal(stored(np, values, "float32", 0.125), values / 8)


@pytest.mark.parametrize("length", [1, 100, 4096, 1 << 20])
def test_large_inputs_do_not_overflow_float16(length):
    values = large(Draw(np, np.ones((2, 3), np.float32), 0, length))
    assert values.max() ** 2 * np.sqrt(length) * 6 < LARGEST["float16"]
    assert values.max() >= 1


@pytest.mark.parametrize("shape", [(4, 64), (3, 2), (5, 1), (7,)])
def test_infinities_never_fill_a_row(shape):
    values = infinite(Draw(np, np.full(shape, -2.0, np.float32), 0, 1))
    assert np.isfinite(values).any(axis=-1).all()
    assert np.isinf(values).any() or shape[-1] == 1


def test_a_seal_sees_other_code_under_the_same_function(monkeypatch):
    device = Cpu()
    seal = Seal(device)
    assert seal.broken() == ""
    monkeypatch.setattr(Cpu.time, "__code__", (lambda self, launches, cold: [1e-9]).__code__)
    assert "Cpu.time" in seal.broken()
    monkeypatch.undo()
    monkeypatch.setattr("time.perf_counter_ns", lambda: 0)
    assert seal.broken() == "time.perf_counter_ns"


def test_a_softmax_whose_sum_is_taken_term_by_term_is_right():
    x = np.random.default_rng(3).standard_normal((512, 1024)).astype(np.float32)
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    total = np.zeros((512, 1), np.float32)
    for k in range(1024):
        total += powers[:, k : k + 1]
    wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact = wide / wide.sum(axis=1, keepdims=True)
    assert deviation(powers / total, exact, "float32", 1024) < 1.0
    assert deviation(powers.astype(np.float16) / total, exact, "float32", 1024) > 1.0
