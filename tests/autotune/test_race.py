"""The race separates what differs, calls a tie what does not, and never prefers a loser to the default."""

import numpy as np
import pytest

from autotune.measurement import Measurement, Status
from autotune.race import LEAST_ROUNDS, LOOKS, finalists, ratio, run_race
from search_spaces.space import Schedule


def schedule(tile):
    return Schedule((("sketch", "a.b"), ("tile", tile)))


def trial(tile, seconds, binary=None):
    return Measurement(schedule(tile), Status.OK, (seconds,), binary=binary or f"binary-{tile}")


DEFAULT = schedule(0)


def racer(true_seconds, noise, seed, library=()):
    """Measures like a device whose clocks drift from round to round and whose samples are noisy."""
    rng = np.random.default_rng(seed)
    looks = []

    def measure(schedules, rounds, look_seed, with_library):
        looks.append(look_seed)
        drift = np.exp(rng.normal(0, 0.05, rounds))
        times = {s: list(true_seconds[s] * drift * np.exp(rng.normal(0, noise, rounds))) for s in schedules}
        return times, {name: [seconds] * rounds for name, seconds in library}

    return measure, looks


def test_two_percent_is_seen_through_drift_five_times_as_large():
    trials = [trial(0, 1.0), trial(1, 0.98)]
    measure, looks = racer({schedule(0): 1.0, schedule(1): 0.98}, 0.005, 0)
    result = run_race(measure, trials, DEFAULT, seed=7)
    assert result.winner == schedule(1)
    assert result.over_default.low > 1.0
    assert result.over_default.low <= 1 / 0.98 <= result.over_default.high
    assert len(looks) < LOOKS
    assert len(set(looks)) == len(looks), "each look has its own order"


def test_equal_schedules_tie_and_the_default_is_kept():
    wrong = 0
    for seed in range(40):
        measure, looks = racer({schedule(0): 1.0, schedule(1): 1.0}, 0.01, seed)
        result = run_race(measure, [trial(0, 1.0), trial(1, 0.97)], DEFAULT, seed=seed)
        wrong += result.winner != DEFAULT
        assert result.winner != DEFAULT or len(looks) == LOOKS or result.tied == 0
    assert wrong <= 2, "a false win in at most one race of twenty"


def test_a_winner_slower_than_the_default_is_never_taken():
    measure, _ = racer({schedule(0): 1.0, schedule(1): 1.1, schedule(2): 1.2}, 0.005, 3)
    result = run_race(measure, [trial(0, 1.0), trial(1, 0.9), trial(2, 0.8)], DEFAULT, seed=0)
    assert result.winner == DEFAULT
    assert result.over_default.times == 1.0


def test_a_default_that_failed_is_not_raced():
    trials = [Measurement(DEFAULT, Status.CRASHED), trial(1, 1.0)]
    measure, _ = racer({schedule(1): 1.0}, 0.01, 0)
    result = run_race(measure, trials, DEFAULT, seed=0)
    assert result.winner == schedule(1)
    assert result.over_default is None


def test_the_fastest_library_call_is_the_one_compared_with():
    measure, _ = racer({schedule(0): 1.0, schedule(1): 0.5}, 0.01, 0, library=(("slow", 3.0), ("fast", 0.75)))
    result = run_race(measure, [trial(0, 1.0), trial(1, 0.5)], DEFAULT, seed=0)
    assert result.best_library == ("fast", 0.75)
    assert result.over_library.times == pytest.approx(1.5, rel=0.05)


def test_finalists_are_distinct_binaries_and_the_default():
    trials = [
        trial(0, 5.0),
        trial(1, 1.0, "x"),
        trial(2, 1.1, "x"),
        trial(3, 1.2),
        Measurement(schedule(4), Status.TIMEOUT),
    ]
    assert finalists(trials, DEFAULT, count=2) == [schedule(1), schedule(3), DEFAULT]


def test_every_round_of_a_race_is_used():
    measure, looks = racer({schedule(0): 1.0, schedule(1): 1.0}, 0.02, 1)
    result = run_race(measure, [trial(0, 1.0), trial(1, 1.0)], DEFAULT, seed=0)
    assert {len(t) for t in result.samples.values()} == {len(looks) * LEAST_ROUNDS}


def test_identical_times_have_no_width():
    assert ratio([2.0, 2.0], [1.0, 1.0]).low == ratio([2.0, 2.0], [1.0, 1.0]).high == 2.0
