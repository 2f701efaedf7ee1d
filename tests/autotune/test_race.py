"""The race separates what differs, calls a tie what does not, and never prefers a loser to the default."""

import numpy as np
import pytest

from autotune.devices.telemetry import Conditions
from autotune.look import Look
from autotune.measurement import Measurement, Status
from autotune.race import LEAST_ROUNDS, LOOKS, Dropped, NoContestant, finalists, ratio, run_race
from autotune.runner import Died
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

    def measure(schedules, rounds, look_seed, with_library, anchor):
        assert anchor in (None, DEFAULT)
        looks.append(look_seed)
        drift = np.exp(rng.normal(0, 0.05, rounds))
        times = {s: list(true_seconds[s] * drift * np.exp(rng.normal(0, noise, rounds))) for s in schedules}
        return Look(times, {name: [seconds] * rounds for name, seconds in library})

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
        assert result.winner != DEFAULT or len(looks) == LOOKS + result.voided or result.tied == 0
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
    assert {len(t) for t in result.samples.values()} == {(len(looks) - result.voided) * LEAST_ROUNDS}


def test_identical_times_have_no_width():
    found = ratio([2.0] * 12, [1.0] * 12)
    assert found.low == found.high == 2.0


def test_too_few_rounds_prove_nothing():
    assert ratio([2.0, 2.0], [1.0, 1.0]).low == 0.0


def test_an_interval_holds_the_truth():
    rng = np.random.default_rng(0)
    misses = 0
    for _ in range(400):
        slow, fast = (np.exp(0.01 * rng.standard_t(2, 30)) for _ in range(2))
        found = ratio(list(1.02 * slow), list(fast), level=0.95)
        misses += not found.low <= 1.02 <= found.high
    assert misses <= 28, "5 % of 400, and two standard deviations"


def test_a_look_in_which_the_default_drifts_is_void():
    steady, _ = racer({schedule(0): 1.0, schedule(1): 0.9}, 0.001, 0)
    looks = []

    def measure(schedules, rounds, *rest):
        look = steady(schedules, rounds, *rest)
        looks.append(rounds)
        if len(looks) <= 2:
            ramp = np.linspace(1.0, 1.5, rounds)
            return Look({s: list(np.asarray(t) * ramp) for s, t in look.times.items()}, look.library)
        return look

    result = run_race(measure, [trial(0, 1.0), trial(1, 0.9)], DEFAULT, seed=0)
    assert result.voided >= 2
    assert result.winner == schedule(1)
    assert {len(t) for t in result.samples.values()} == {(len(looks) - result.voided) * LEAST_ROUNDS}


def test_a_device_that_never_calms_keeps_the_default():
    def measure(schedules, rounds, *_):
        return Look({s: [(1.0 - 0.1 * s["tile"]) * (1.0 + 0.1 * i) for i in range(rounds)] for s in schedules}, {})

    result = run_race(measure, [trial(0, 1.0), trial(1, 0.9)], DEFAULT, seed=0)
    assert result.winner == DEFAULT
    assert result.voided == LOOKS


def with_knobs(**knobs):
    return Schedule((("sketch", "a.b"), *knobs.items()))


def test_of_equals_the_simplest_wins():
    default = with_knobs(tile=0, width=0, order=0)
    near, far = with_knobs(tile=0, width=1, order=0), with_knobs(tile=1, width=1, order=1)
    measure, _ = racer({default: 1.0, near: 0.5001, far: 0.5}, 0.005, 0)
    trials = [Measurement(s, Status.OK, (t,), binary=s.key) for s, t in ((default, 1.0), (near, 0.5001), (far, 0.5))]
    assert run_race(lambda s, n, seed, lib, _: measure(s, n, seed, lib, None), trials, default, 0).winner == near


def test_who_kills_the_worker_is_dropped_and_the_others_race_on():
    steady, _ = racer({schedule(0): 1.0, schedule(2): 0.9}, 0.001, 0)

    def measure(schedules, *rest):
        if schedule(1) in schedules:
            raise Died("the process was ended by SIGSEGV")
        return steady(schedules, *rest)

    result = run_race(measure, [trial(0, 1.0), trial(1, 0.5), trial(2, 0.9)], DEFAULT, seed=0)
    assert result.winner == schedule(2)
    assert result.dropped == {schedule(1): Dropped(Status.CRASHED, "the process was ended by SIGSEGV")}


@pytest.mark.parametrize("after", [1, 3])
def test_who_turns_wrong_is_dropped_with_its_times(after):
    """Two that are equal need every look there is; the one that is wrong is the simpler one."""
    steady, looks = racer({schedule(0): 1.0, schedule(1): 0.5, schedule(2): 0.5}, 0.01, 2)

    def measure(*asked):
        look = steady(*asked)
        wrong = schedule(1) in look.times and len(looks) >= after
        return Look(look.times, look.library, faults={schedule(1): "in the race, not finite"} if wrong else {})

    result = run_race(measure, [trial(0, 1.0), trial(1, 0.5), trial(2, 0.5)], DEFAULT, seed=0)
    assert len(looks) >= after
    assert result.winner == schedule(2)
    assert schedule(1) not in result.samples
    assert result.dropped == {schedule(1): Dropped(Status.WRONG_RESULT, "in the race, not finite")}


def test_a_race_of_which_no_one_is_left_says_why():
    measure, _ = racer({schedule(0): 1.0}, 0.01, 0)

    def spoiled(*asked):
        return Look(measure(*asked).times, {}, faults={DEFAULT: "in the race, not finite"})

    with pytest.raises(NoContestant, match="not finite") as raised:
        run_race(spoiled, [trial(0, 1.0)], DEFAULT, seed=0)
    assert raised.value.dropped[DEFAULT].status is Status.WRONG_RESULT


def test_the_state_of_the_device_in_each_look_is_kept():
    steady, looks = racer({schedule(0): 1.0, schedule(1): 1.0}, 0.01, 0)

    def measure(*asked):
        look = steady(*asked)
        return Look(look.times, look.library, Conditions(1980, 3201, 500.0, 40 + len(looks)))

    result = run_race(measure, [trial(0, 1.0), trial(1, 1.0)], DEFAULT, seed=0)
    assert [c.celsius for c in result.conditions] == [41 + i for i in range(len(looks))]


def test_a_library_call_that_kills_the_worker_is_left_out():
    steady, _ = racer({schedule(0): 1.0, schedule(1): 0.9}, 0.001, 0)

    def measure(schedules, rounds, seed, library, anchor):
        if library:
            raise TimeoutError
        return steady(schedules, rounds, seed, library, anchor)

    result = run_race(measure, [trial(0, 1.0), trial(1, 0.9)], DEFAULT, seed=0)
    assert result.winner == schedule(1)
    assert result.over_library is None


def test_a_worker_that_always_dies_ends_the_race():
    def measure(*_):
        raise Died("gone")

    with pytest.raises(Died):
        run_race(measure, [trial(0, 1.0), trial(1, 0.9)], DEFAULT, seed=0)
