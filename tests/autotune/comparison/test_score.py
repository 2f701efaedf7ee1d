import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from autotune.comparison.replay import noisy_seconds, race_seconds, replay
from autotune.comparison.score import Yardstick, median_to, runs_table, score_of, spaces_table
from autotune.comparison.trace import Trace, slowest

BUDGETS = (8, 16, 40)


def by_time(recording):
    return [int(i) for i in np.argsort(recording.seconds)]


def trace_of(recording, places, observed=None, trials=40, **more):
    seconds = recording.seconds[places] if observed is None else observed
    told = tuple(float(t) if math.isfinite(t) else None for t in seconds)
    return Trace("some", recording.name, 0, trials, tuple(places), told, (0.0,) * len(places), **more)


def yardstick_of(recording, seeds=1, trials=40):
    return Yardstick.of(recording, [noisy_seconds(recording, s) for s in range(seeds)], trials)


def test_a_search_holds_what_looked_fastest_not_what_was(recording):
    best, second, third = by_time(recording)[:3]
    observed = [3e-3, 2e-3, 4e-3]
    values = trace_of(recording, [third, second, best], observed, trials=5).values(recording)
    assert values == pytest.approx(recording.seconds[[third, second, second, second, second]])


def test_before_anything_ran_it_holds_the_slowest(recording):
    failed = int(np.flatnonzero(np.isinf(recording.seconds))[0])
    best = by_time(recording)[0]
    values = trace_of(recording, [failed, best], trials=3).values(recording)
    assert values == pytest.approx([slowest(recording), recording.optimum, recording.optimum])
    assert trace_of(recording, [], trials=2).values(recording) == pytest.approx([slowest(recording)] * 2)


def test_a_race_finds_the_best_of_those_that_look_fastest_and_no_other(recording):
    order = by_time(recording)[:7]
    failed = int(np.flatnonzero(np.isinf(recording.seconds))[0])
    # What looks slowest of five is the fastest; then a sixth pushes it out.
    places, observed = [failed, *order[:6]], [math.inf, 5.0, 1.0, 2.0, 3.0, 4.0, 0.5]
    values = trace_of(recording, places, observed, trials=8).raced_values(recording, lambda p: recording.seconds[p])
    best, second = recording.seconds[order[:2]]
    assert values == pytest.approx([slowest(recording), *[best] * 5, second, second])


def test_a_race_can_be_wrong_too(recording):
    best, second = by_time(recording)[:2]
    trace = trace_of(recording, [best, second], trials=2)
    assert trace.raced_values(recording, lambda p: 1.0 + (p == best))[-1] == recording.seconds[second]


def test_raced_figures_are_held_against_a_random_search_that_races(recording):
    yardstick = yardstick_of(recording)
    assert (yardstick.unmisled <= yardstick.baseline + 1e-12).all()
    trace = trace_of(recording, by_time(recording)[:40])
    row = score_of(trace, yardstick, BUDGETS)
    raced = trace.raced_values(recording, lambda p: race_seconds(recording, 0, p))
    ahead = yardstick.unmisled[:16] - recording.optimum
    assert row["raced_score_16"] == pytest.approx(np.mean((yardstick.unmisled[:16] - raced[:16]) / ahead))
    assert row["raced_within_16"] == (recording.optimum / raced[15] >= 0.95)


def test_the_race_is_the_same_whoever_searches_and_less_noisy_than_a_trial(recording):
    place = by_time(recording)[0]
    assert race_seconds(recording, 3, place) == race_seconds(recording, 3, place)
    errors = [
        np.std([measure(s) for s in range(60)])
        for measure in (lambda s: race_seconds(recording, s, place), lambda s: noisy_seconds(recording, s)[place])
    ]
    assert 0.0 < errors[0] < errors[1]


def test_the_optimum_at_once_scores_one_and_the_baseline_zero(recording):
    yardstick = yardstick_of(recording)
    assert yardstick.score(np.full(40, recording.optimum)) == pytest.approx(1.0)
    assert yardstick.score(yardstick.baseline) == pytest.approx(0.0)
    assert yardstick.score(np.full(40, slowest(recording))) < 0.0


def test_the_score_is_the_mean_share_of_random_searchs_distance(recording):
    yardstick = yardstick_of(recording)
    values = np.array([slowest(recording), 1.5e-3, 1.2e-3])
    ahead = yardstick.baseline[:3] - recording.optimum
    assert yardstick.score(values) == pytest.approx(np.mean((yardstick.baseline[:3] - values) / ahead))


def test_the_control_scores_zero_failures_noise_and_clock_included(recording):
    seeds = range(120)
    yardstick = yardstick_of(recording, len(seeds))
    runs = [score_of(replay(recording, "random", s, trials=40, batch=8), yardstick, BUDGETS) for s in seeds]
    assert any(run["failures"] for run in runs)
    for metric in ("score_8", "score_16", "score_40", "score_clock", "score_own"):
        scores = np.array([run[metric] for run in runs])
        assert abs(scores.mean()) < 2.5 * scores.std(ddof=1) / math.sqrt(len(seeds)), metric


def test_on_the_clock_a_cheap_search_is_ahead_of_a_dear_one(recording):
    yardstick = yardstick_of(recording)
    trace = trace_of(recording, by_time(recording)[39::-1])
    dear = replace(trace, overhead=(5.0,) * 40)
    assert score_of(trace, yardstick, BUDGETS)["score_clock"] > score_of(dear, yardstick, BUDGETS)["score_clock"]
    assert score_of(trace, yardstick, BUDGETS)["score_40"] == score_of(dear, yardstick, BUDGETS)["score_40"]


def test_the_gap_is_split_into_what_was_not_tried_and_what_was_not_seen(recording):
    order = by_time(recording)
    best, worse = order[5], order[20]
    row = score_of(trace_of(recording, [best, worse], [3e-3, 2e-3]), yardstick_of(recording), BUDGETS)
    assert row["exploration_gap"] == pytest.approx(recording.seconds[best] / recording.optimum - 1)
    assert row["selection_gap"] == pytest.approx(recording.seconds[worse] / recording.seconds[best] - 1)
    assert 1 + row["gap"] == pytest.approx((1 + row["exploration_gap"]) * (1 + row["selection_gap"]))
    assert row["misled"]


def test_a_wrong_choice_within_the_noise_misleads_nobody(recording):
    twins = replace(recording, seconds=recording.seconds.copy())
    best, second = by_time(recording)[:2]
    twins.seconds[second] = twins.seconds[best] * 1.001
    row = score_of(trace_of(twins, [best, second], [2e-3, 1e-3]), yardstick_of(twins), BUDGETS)
    assert row["selection_gap"] == pytest.approx(0.001)
    assert not row["misled"]


def test_measurements_until_near_the_optimum(recording):
    best, *_, worst = (p for p in by_time(recording) if np.isfinite(recording.seconds[p]))
    yardstick = yardstick_of(recording)
    assert score_of(trace_of(recording, [worst, worst, best]), yardstick, BUDGETS)["to_within"] == 3.0
    assert math.isnan(score_of(trace_of(recording, [worst]), yardstick, BUDGETS)["to_within"])


def test_their_median_counts_searches_that_never_arrived():
    assert median_to(np.array([10.0, 20.0, 30.0]), 100) == 20.0
    assert median_to(np.array([10.0, 20.0, math.nan, math.nan]), 100) == 20.0
    assert math.isnan(median_to(np.array([10.0, math.nan, math.nan]), 100))
    assert math.isnan(median_to(np.array([math.nan]), 100))


def test_tables_leave_out_what_crashed_and_take_means_of_the_rest(recording):
    yardsticks = {recording.name: yardstick_of(recording)}
    traces = [replay(recording, "random", s, trials=40, batch=8) for s in range(3)]
    crashed = replace(traces[0], error="ValueError: no")
    runs = runs_table([*traces, crashed], yardsticks, BUDGETS)
    assert list(runs["seed"]) == [0, 1, 2]
    table = spaces_table(runs, 40)
    assert table["runs"].tolist() == [3]
    assert table["score_40"].tolist() == pytest.approx([runs["score_40"].mean()])
    assert table["fraction_16"].tolist() == pytest.approx([runs["fraction_16"].median()])
    assert isinstance(table, pd.DataFrame)
