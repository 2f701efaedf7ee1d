"""Tolerances admit correct rounding and refuse narrower arithmetic and wrong elements."""

import numpy as np
import pytest

from autotune.checking import tolerance
from autotune.devices.cpu import Cpu


def deviation(output, reference, dtype, length):
    allowed = tolerance(dtype, length)
    return Cpu().deviation(output, reference, allowed.relative, allowed.of_rms)


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


def test_zeros_are_compared_without_dividing_by_zero():
    assert deviation(np.zeros(4, np.float32), np.zeros(4), "float32", 4) == 0.0
