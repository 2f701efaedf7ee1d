"""The calculated random search, held against the enumeration of every draw and against published budgets."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.comparison.baseline import expected_best, median_best, own_budget, values_by_look
from autotune.comparison.trace import slowest


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=7))
def test_the_expected_best_is_the_mean_over_every_draw(values):
    ranked = np.array(values)
    found = expected_best(ranked, len(values) + 2)
    for k in range(1, len(values) + 1):
        every = [values[min(places)] for places in combinations(range(len(values)), k)]
        assert found[k - 1] == pytest.approx(np.mean(every))
    assert found[-2:] == pytest.approx([values[0]] * 2)


@given(st.lists(st.floats(0.1, 100.0), min_size=1, max_size=7))
def test_the_median_best_is_the_median_over_every_draw(values):
    found = median_best(np.array(values), len(values) + 1)
    for k in range(1, len(values) + 1):
        ranks = sorted(min(places) for places in combinations(range(len(values)), k))
        assert found[k - 1] == values[ranks[(len(ranks) - 1) // 2]]
    assert found[-1] == values[0]


def test_in_rising_order_it_is_the_expected_minimum():
    values = np.sort(np.random.default_rng(0).lognormal(size=9))
    every = [min(draw) for draw in combinations(values, 4)]
    assert expected_best(values, 4)[3] == pytest.approx(np.mean(every))


def test_it_stays_exact_where_there_are_many_schedules():
    count = 18_000
    found = expected_best(np.arange(1.0, count + 1), 200)
    # The expected minimum of k of the numbers 1 .. N.
    assert found == pytest.approx([(count + 1) / (k + 1) for k in range(1, 201)])


def test_failures_come_last_and_are_worth_the_slowest(recording):
    values = values_by_look(recording, recording.seconds, slowest(recording))
    failed = int(np.isinf(recording.seconds).sum())
    assert failed > 0
    assert values[-failed:] == pytest.approx([slowest(recording)] * failed)
    assert values[0] == recording.optimum


def test_noise_decides_who_looks_best_not_what_it_is_worth(recording):
    observed = recording.seconds.copy()
    third = int(np.argsort(observed)[2])
    observed[third] = 1e-9
    assert values_by_look(recording, observed, 1.0)[0] == recording.seconds[third]


def test_the_own_budget_is_willemsens():
    # From worst to best 10 .. 1: median 5.5, the target at p = 0.5 is 3.25, first met by the eighth, 3.
    assert own_budget(np.array([*range(1, 11), np.inf]), share=0.5) == -(-7 // 4)
    # 1000 .. 1: median 500.5, the target at p = 0.95 is 25.975, first met by the 975th, 25.
    assert own_budget(np.arange(1.0, 1001.0)) == -(-975 // 26)
