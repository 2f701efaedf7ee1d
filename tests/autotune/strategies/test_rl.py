"""Both strategies that learn by reinforcement: what the contract of all strategies does not ask."""

import math

import numpy as np

from autotune.strategies.base import Aids, Result
from autotune.strategies.rl import WARM_UP, ReinforcementLearning
from autotune.strategies.rl_model import ModelTrainedPolicy
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

NAMES = tuple(f"k{i}" for i in range(12))
SIZES = tuple(2**i for i in range(8))
BEST = {name: SIZES[i % 8] for i, name in enumerate(NAMES)}


def large():
    """8^12 schedules."""
    return ScheduleSpace((SketchSpace("s", tuple(Knob(n, Family.TILE_SIZES, SIZES) for n in NAMES)),))


def seconds(schedule):
    return 1.0 + sum(abs(math.log2(schedule.integer(n) / best)) for n, best in BEST.items())


def searched(strategy, trials, batch=8):
    asked = []
    while len(asked) < trials:
        new = strategy.ask(batch)
        asked += new
        strategy.tell([Result(s, seconds(s)) for s in new])
    return [seconds(s) for s in asked]


def test_the_policy_draws_better_as_it_learns():
    times = searched(ReinforcementLearning(large(), np.random.default_rng(0)), 320)
    assert np.mean(times[-80:]) < 0.75 * np.mean(times[:80])


def test_it_goes_on_when_the_policy_only_repeats_itself():
    knobs = (Knob("a", Family.WARPS, tuple(range(1, 41))), Knob("b", Family.WARPS, (1, 2)))
    space = ScheduleSpace((SketchSpace("s", knobs),))
    strategy = ReinforcementLearning(space, np.random.default_rng(0))
    asked = strategy.ask(WARM_UP)
    strategy.tell([Result(s, 1.0 + i) for i, s in enumerate(asked)])
    while new := strategy.ask(4):
        asked += new
        # All that is new is slower: the policy is drawn to what was told before.
        strategy.tell([Result(s, 1e3) for s in new] + [Result(asked[0], 1.0)] * 40)
    assert len(asked) == len(set(asked)) == 80


def test_results_may_come_in_any_order_and_late():
    strategy = ReinforcementLearning(large(), np.random.default_rng(0))
    asked = [s for _ in range(6) for s in strategy.ask(WARM_UP)]
    assert len(set(asked)) == 96
    for place in np.random.default_rng(1).permutation(len(asked)):
        strategy.tell([Result(asked[place], seconds(asked[place]))])
    assert not set(strategy.ask(16)) & set(asked)


def test_it_climbs_the_score_of_a_space_that_cannot_be_listed():
    strategy = ModelTrainedPolicy(
        large(), np.random.default_rng(0), Aids(lambda schedules: np.array([seconds(s) for s in schedules]))
    )
    times = searched(strategy, 64)
    assert min(times[16:]) < 0.5 * min(times[:16])


def test_the_score_counts_by_rank_alone():
    asked = []
    for scale in (1.0, 1e6):
        score = Aids(lambda schedules, scale=scale: np.array([scale * seconds(s) ** 3 for s in schedules]))
        strategy = ModelTrainedPolicy(large(), np.random.default_rng(0), score)
        searched(strategy, 32)
        asked.append(list(strategy.told))
    assert asked[0] == asked[1]
