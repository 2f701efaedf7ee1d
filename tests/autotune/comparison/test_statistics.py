"""Tests of significance, held against worked examples."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from autotune.comparison.statistics import estimate, holm, pairs, ranks


def table(values):
    """Strategy -> space -> runs, as rows."""
    return pd.DataFrame(
        [
            {"strategy": strategy, "space": space, "p": float(p)}
            for strategy, spaces in values.items()
            for space, runs in spaces.items()
            for p in runs
        ]
    )


def test_holm_on_a_worked_example():
    # Sorted .005 .01 .03 .04: times 4, 3, 2, 1, never falling.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_ranks_share_ties_and_agree_with_scipy():
    data = np.array([[0.9, 0.8, 0.7], [0.9, 0.9, 0.1], [0.2, 0.8, 0.5], [0.6, 0.5, 0.4]])
    found = ranks(pd.DataFrame(data, columns=["a", "b", "c"]))
    assert found.mean == pytest.approx({"a": (1 + 1.5 + 3 + 1) / 4, "b": (2 + 1.5 + 1 + 2) / 4, "c": 11 / 4})
    assert found.p == pytest.approx(stats.friedmanchisquare(*data.T).pvalue)


def test_the_critical_difference_is_the_published_one():
    # Demsar, "Statistical Comparisons of Classifiers over Multiple Data Sets" (JMLR 2006): 4 on 14 data sets, 5 %.
    found = ranks(pd.DataFrame(np.random.default_rng(0).random((14, 4)), columns=list("abcd")))
    assert found.critical == pytest.approx(1.25, abs=5e-3)


def test_two_strategies_have_no_friedman():
    found = ranks(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 4.0]}))
    assert math.isnan(found.p)
    assert found.mean == pytest.approx({"a": 4 / 3, "b": 5 / 3})


def test_pairs_are_tested_over_spaces_and_on_each():
    rng = np.random.default_rng(0)
    spaces = [f"s{i}" for i in range(8)]
    values = {
        "good": {s: rng.normal(1.0, 0.1, 20) for s in spaces},
        "bad": {s: rng.normal(0.0, 0.1, 20) for s in spaces},
        "same": {s: rng.normal(1.0, 0.1, 20) for s in spaces},
    }
    found = {(p.one, p.other): p for p in pairs(table(values), "p")}
    clear, close = found["good", "bad"], found["good", "same"]
    assert (clear.better, clear.worse) == (8, 0)
    assert clear.a12 == 1.0
    assert clear.difference == pytest.approx(1.0, abs=0.1)
    means = {name: [v.mean() for v in by_space.values()] for name, by_space in values.items()}
    # Three pairs: the two clear ones share the smallest p.
    assert clear.p == pytest.approx(3 * stats.wilcoxon(means["good"], means["bad"]).pvalue)
    assert close.p > 0.05
    assert (close.better, close.worse) == (0, 0)


def test_a12_is_the_chance_that_one_is_higher():
    values = {"one": {"s": [1, 2, 3, 4]}, "other": {"s": [2, 2, 0]}}
    wins = [(a > b) + 0.5 * (a == b) for a in values["one"]["s"] for b in values["other"]["s"]]
    assert pairs(table(values), "p")[0].a12 == pytest.approx(np.mean(wins))


def test_strategies_that_agree_everywhere_are_not_told_apart():
    values = {"a": {"s": [1, 1], "t": [2, 2]}, "b": {"s": [1, 1], "t": [2, 2]}}
    (pair,) = pairs(table(values), "p")
    assert (pair.p, pair.a12, pair.better, pair.worse) == (1.0, 0.5, 0, 0)


def test_intervals_over_repeats_are_as_wide_as_theory_says():
    samples = [np.random.default_rng(i).normal(i, 1.0, 200) for i in range(4)]
    found = estimate(samples, seed=1)
    error = math.sqrt(sum(s.var() / len(s) for s in samples)) / 4
    low, high = found.over_repeats
    assert found.value == pytest.approx(np.mean([s.mean() for s in samples]))
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_spaces_that_differ_widen_the_interval_over_spaces():
    found = estimate([np.full(5, float(i)) for i in range(10)], seed=1)
    assert found.over_repeats == pytest.approx((4.5, 4.5))
    assert found.over_spaces[1] - found.over_spaces[0] > 2.0


def test_one_space_or_one_run_has_no_interval():
    found = estimate([np.array([3.0])], seed=0)
    assert found.value == 3.0
    assert math.isnan(found.over_repeats[0])
    assert math.isnan(found.over_spaces[0])
