"""Inputs that are no plain numbers: codes, pages and ends of groups are valid whatever they are made from."""

import array_api_compat
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autotune.checking import Checker
from autotune.devices.cpu import Cpu
from autotune.inputs import FOR_FINALISTS, Draw, filled
from autotune.measurement import Policy
from search_spaces.hardware import cpu_hardware
from search_spaces.operator import Content, TensorSpec
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

FLOATS = st.floats(-1e4, 1e4, width=32)


def drawn(shape):
    return arrays.arrays(np.float32, shape, elements=FLOATS)


def checker_of(operator, dtype, **axes):
    workload = find_operator(operator).workload("llvm", dtype, **axes)
    hardware = cpu_hardware("cpu", 2, 1 << 20, 1e11, {"float32": 1e12})
    return Checker(Cpu(), Task(operator, workload, Target("llvm"), hardware), Policy())


@given(drawn((3, 5)), st.integers(15, 1000))
def test_pages_are_different_ones_of_those_there_are(values, bound):
    made = filled(np, values, TensorSpec("T", (3, 5), "int32", content=Content.PAGES, bound=bound))
    assert made.shape == (3, 5)
    assert len(set(made.ravel().tolist())) == 15
    assert made.min() >= 0
    assert made.max() < bound


@given(drawn((7,)), st.integers(0, 10**6))
def test_ends_of_groups_rise_to_the_last_row(values, bound):
    made = filled(np, values, TensorSpec("E", (7,), "int32", content=Content.OFFSETS, bound=bound))
    assert np.array_equal(made, np.floor(made))
    assert made[0] >= 0
    assert (np.diff(made) >= 0).all()
    assert made[-1] == bound


@given(drawn((6, 4)), st.integers(4, 1000))
def test_choices_of_a_row_are_different_ones_of_those_there_are(values, bound):
    made = filled(np, values, TensorSpec("IDS", (6, 4), "int32", content=Content.CHOICES, bound=bound))
    assert np.array_equal(made, np.floor(made))
    assert all(len(set(row)) == 4 for row in made.tolist())
    assert made.min() >= 0
    assert made.max() < bound


@given(drawn((11,)))
def test_codes_are_whole_numbers_of_a_byte(values):
    made = filled(np, values, TensorSpec("B", (11,), "int8", content=Content.CODES))
    assert np.array_equal(made, made.astype(np.int8))


def test_normal_values_make_uneven_and_empty_groups_and_all_codes():
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    ends = filled(np, values, TensorSpec("E", (1000,), "int32", content=Content.OFFSETS, bound=100_000))
    sizes = np.diff(ends, prepend=0)
    assert 100 < (sizes == 0).sum() < 250
    assert sizes.max() > 2 * sizes.mean()
    codes = filled(np, np.resize(values, 10_000) * 1.7, TensorSpec("B", (10_000,), "int8", content=Content.CODES))
    assert len(set(codes.tolist())) > 200
    ids = filled(np, values.reshape(250, 4), TensorSpec("IDS", (250, 4), "int32", content=Content.CHOICES, bound=16))
    often = np.bincount(ids.astype(int).ravel(), minlength=16)
    assert 40 < often.min() < often.max() < 85
    assert len({tuple(np.diff(row)) for row in ids.tolist()}) > 50


@pytest.mark.parametrize("kind", FOR_FINALISTS.values(), ids=FOR_FINALISTS)
@pytest.mark.parametrize("content", [c for c in Content if c is not Content.VALUES])
def test_numpy_and_torch_make_the_same_of_every_distribution(content, kind):
    torch = pytest.importorskip("torch")
    spec = TensorSpec("X", (40,), "int32", content=content, bound=40)
    values = np.random.default_rng(1).permutation(40).astype(np.float32) / 8 - 2.5
    made = []
    for array in (values, torch.from_numpy(values)):
        xp = array_api_compat.array_namespace(array)
        given_values = kind(Draw(xp, array, 0, 40))
        finite = xp.where(xp.isfinite(given_values), given_values, xp.zeros_like(given_values))
        made.append(np.sort(np.asarray(filled(xp, finite, spec))))
    np.testing.assert_array_equal(*made)


@pytest.mark.parametrize(
    ("operator", "axes"),
    [
        ("argmax", {"M": 9, "N": 300}),
        ("attention_paged", {"B": 3, "H": 4, "G": 2, "S": 50, "D": 16, "T": 2}),
        ("fused_moe", {"E": 5, "M": 20, "T": 2, "N": 24, "K": 40}),
        ("grouped_matmul", {"E": 5, "M": 20, "T": 2, "N": 24, "K": 40}),
        ("int8_dynamic_linear", {"M": 9, "N": 24, "K": 256}),
        ("weight_only_linear", {"M": 3, "N": 24, "K": 256}),
    ],
)
def test_the_library_is_right_on_every_distribution(operator, axes):
    checker = checker_of(operator, "float32", **axes)
    task = checker.task

    def launch():
        # Made anew, as some prepare what the inputs hold.
        (call,) = task.operator.numpy_library(task.workload, np, checker.inputs, checker.outputs).values()
        call()

    assert checker.check(launch).fault == ""
    launch()
    assert checker.check_again(launch).fault == ""
    assert checker.check_distributions([launch])[0].fault == ""


def test_an_index_must_be_the_first_of_equals():
    checker = checker_of("argmax", "float16", M=64, N=1000)
    (x,), (y,) = checker.inputs, checker.outputs

    def last():
        y[...] = 999 - np.argmax(x[:, ::-1], axis=-1)

    def beside():
        y[...] = np.argmax(x, axis=-1) + 1

    assert "deviates" in checker.check(beside).fault
    checker.restore()
    assert "deviates" in checker.check_distributions([last])[0].fault


def test_an_index_that_nobody_wrote_is_seen():
    checker = checker_of("argmax", "float32", M=4, N=100)
    assert checker.check(lambda: None).fault
