"""Scales and ticks of charts."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.reporting.scale import Scale, apart

SPANS = st.tuples(st.floats(1e-9, 1e9), st.floats(1.001, 1e6)).map(lambda t: (t[0], t[0] * t[1]))


@given(SPANS, st.booleans(), st.integers(3, 12))
def test_ticks_are_few_rise_and_lie_within(span, log, most):
    scale = Scale(*span, log=log)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most + 2
    assert ticks == sorted(set(ticks))
    assert all(scale.low * (1 - 1e-6) <= t <= scale.high * (1 + 1e-6) for t in ticks)


@given(SPANS, st.booleans())
def test_values_keep_their_order_and_never_leave_the_picture(span, log):
    scale = Scale(*span, log=log).placed(300.0, 20.0)
    assert scale(scale.low) == 300.0
    assert scale(scale.high) == pytest.approx(20.0)
    assert scale(scale.high * 10) == scale(scale.high)
    assert scale(scale.low) >= scale(math.sqrt(scale.low * scale.high)) >= scale(scale.high)


@pytest.mark.parametrize(("low", "high", "log"), [(1.0, 1.0, False), (2.0, 1.0, False), (0.0, 1.0, True)])
def test_a_scale_that_cannot_be_is_refused(low, high, log):
    with pytest.raises(ValueError, match="no scale"):
        Scale(low, high, log=log)


@pytest.mark.parametrize("values", [[], [3.0], [5.0, 5.0], [1.0, 2.0]])
@pytest.mark.parametrize("log", [False, True])
def test_any_values_have_a_scale_around_them(values, log):
    scale = Scale.over(values, log=log)
    assert all(scale.low < v < scale.high for v in values)


@given(st.lists(st.floats(0, 100), max_size=6))
def test_labels_are_apart_and_within_where_there_is_room(places):
    moved = apart(places, 10.0, 0.0, 100.0)
    order = sorted(moved)
    assert all(b - a >= 10.0 - 1e-9 for a, b in pairwise(order))
    assert all(-1e-9 <= place <= 100.0 + 1e-9 for place in moved)
    assert sorted(range(len(places)), key=places.__getitem__) == sorted(range(len(moved)), key=moved.__getitem__)
