"""How the strategies without a model move: what each is named for."""

import math

import numpy as np
import pytest

from autotune.strategies.annealing import Annealing
from autotune.strategies.base import Result
from autotune.strategies.beam import START, WIDTH, BeamSearch
from autotune.strategies.coordinate_descent import CoordinateDescent
from autotune.strategies.genetic import POPULATION, GeneticAlgorithm
from autotune.strategies.greedy_ils import GreedyIteratedLocalSearch
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

KNOBS = 6
SPACE = ScheduleSpace(
    (SketchSpace("bowl", tuple(Knob(f"k{i}", Family.TILE_SIZES, tuple(range(10))) for i in range(KNOBS))),)
)


def bowl(schedule):
    """One optimum, at 3 in every knob; every descent by single knobs ends there."""
    return 1.0 + sum((schedule.integer(f"k{i}") - 3) ** 2 for i in range(KNOBS))


def differing(one, other):
    return sum(a != b for a, b in zip(one.items, other.items, strict=True))


def told(strategy, trials, batch=4, seconds=bowl):
    asked = []
    while len(asked) < trials:
        new = strategy.ask(batch)
        asked += new
        strategy.tell([Result(s, seconds(s)) for s in new])
    return asked


@pytest.mark.parametrize("kind", [Annealing, GreedyIteratedLocalSearch, CoordinateDescent, BeamSearch])
def test_it_descends_to_the_bottom_of_a_bowl(kind):
    asked = told(kind(SPACE, np.random.default_rng(0)), 400)
    assert min(map(bowl, asked)) == 1.0


@pytest.mark.parametrize("kind", [GreedyIteratedLocalSearch, CoordinateDescent])
def test_it_steps_from_the_fastest(kind):
    strategy = kind(SPACE, np.random.default_rng(1))
    told(strategy, 16)
    best = strategy.best(1)[0]
    assert [differing(best, s) for s in strategy.ask(3)] == [1, 1, 1]


def test_coordinate_descent_scans_one_knob_after_the_other():
    strategy = CoordinateDescent(SPACE, np.random.default_rng(1))
    told(strategy, 16)
    best = strategy.best(1)[0]
    # Nothing is told, so the scan goes on around the same schedule: nine other values of each knob.
    scanned = [next(k for k in s.knobs if s[k] != best[k]) for s in strategy.ask(9 * KNOBS)]
    runs = [knob for place, knob in enumerate(scanned) if place == 0 or knob != scanned[place - 1]]
    assert len(runs) == len(set(runs)) == KNOBS


def test_a_greedy_search_that_is_stuck_is_kicked():
    strategy = GreedyIteratedLocalSearch(SPACE, np.random.default_rng(2))
    told(strategy, 400)
    bottom = strategy.best(1)[0]
    # All its neighbours were tried, so what is asked next lies further away.
    far = [s for s in told(strategy, 40) if differing(bottom, s) > 1]
    assert len(far) >= 10


def test_annealing_goes_uphill_while_it_is_hot_and_not_when_it_is_cold():
    strategy = Annealing(SPACE, np.random.default_rng(3))
    told(strategy, 16)
    strategy._seconds = 1.0
    uphill = [sum(strategy._accepts(1.1, heat) for _ in range(200)) for heat in (0.18, 0.005)]
    assert uphill[0] > 80
    assert uphill[1] == 0
    assert strategy._accepts(0.99, 0.005)


def test_a_beam_tries_actions_of_each_member():
    strategy = BeamSearch(SPACE, np.random.default_rng(4))
    told(strategy, START)
    beam = strategy.best(WIDTH)
    asked = strategy.ask(2 * WIDTH)
    for member in beam:
        assert sum(differing(member, s) == 1 for s in asked) >= 2
    assert all(min(differing(member, s) for member in beam) == 1 for s in asked)


def test_children_take_most_values_from_the_parents():
    strategy = GeneticAlgorithm(SPACE, np.random.default_rng(5))
    parents = told(strategy, POPULATION)
    children = strategy.ask(POPULATION)
    inherited = [any(child[k] == p[k] for p in parents) for child in children for k in child.knobs]
    assert np.mean(inherited) > 0.9


def test_the_next_generation_does_not_wait_for_the_slow_half():
    strategy = GeneticAlgorithm(SPACE, np.random.default_rng(6))
    first = strategy.ask(POPULATION)
    fast = sorted(first, key=bowl)[: POPULATION // 2]
    strategy.tell([Result(s, bowl(s)) for s in fast])
    strategy.ask(1)
    assert set(strategy._parents) == set(fast)
    strategy.tell([Result(s, math.inf) for s in first if s not in fast])
    assert set(strategy._parents) == set(fast)
