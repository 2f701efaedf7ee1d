"""What every strategy must keep: one that a third party adds is held to the same."""

import math
from functools import cache
from itertools import islice

import numpy as np
import pytest

from autotune.strategies.base import Aids, Result, Strategy
from autotune.tuner import Learner
from cost_models.features import Features
from search_spaces import registry
from search_spaces.space import SKETCH, Constraint, Family, Knob, Schedule, ScheduleSpace, SketchSpace

PACKAGE, MODELS = "autotune.strategies", "cost_models.models"
# Those that are not meant to learn from what they are told.
BLIND = {"exhaustive", "random", "sample"}


@pytest.fixture(params=registry.names(PACKAGE))
def name(request):
    return request.param


@pytest.fixture
def strategy(name):
    return registry.find(PACKAGE, name, "strategy")


def two_sketches():
    """Two sketches of a few hundred schedules, with a limit across knobs and tuples of factors."""
    tiles = tuple((2**i, 2**j, 2 ** (6 - i - j)) for i in range(7) for j in range(7 - i))
    fits = Constraint("too large", ("tile", "stages"), lambda t, s: t[1] * t[2] * s <= 64)
    knobs = (
        Knob("tile", Family.TILE_SIZES, tiles),
        Knob("stages", Family.SHARED_MEMORY, (1, 2, 3, 4)),
        Knob("order", Family.LOOP_ORDER, ("row", "column", "grouped")),
    )
    other = (Knob("warps", Family.WARPS, (1, 2, 4, 8)), Knob("persistent", Family.PERSISTENCE, (False, True)))
    return ScheduleSpace((SketchSpace("tiled", knobs, (fits,)), SketchSpace("plain", (*other, knobs[1]))))


def tiny():
    """Seven legal schedules of twelve."""
    knobs = (Knob("a", Family.WARPS, (1, 2, 3, 4)), Knob("b", Family.UNROLLING, (1, 2, 3)))
    return ScheduleSpace(
        (SketchSpace("only", knobs, (Constraint("odd", ("a", "b"), lambda a, b: (a + b) % 2 < a % 2 + b % 2),)),)
    )


def valley():
    """4,096 schedules whose times have one optimum, with knobs that depend on each other."""
    return ScheduleSpace(
        (
            SketchSpace(
                "valley", tuple(Knob(f"k{i}", Family.TILE_SIZES, tuple(2**j for j in range(8))) for i in range(4))
            ),
        )
    )


def valley_seconds(schedule):
    a, b, c, d = (math.log2(schedule.integer(f"k{i}")) for i in range(4))
    return 1e-3 * (1 + 0.1 * (a + b - 7) ** 2 + 0.2 * (b - 5) ** 2 + 0.1 * (c - d) ** 2 + 0.05 * (d - 3) ** 2)


@cache
def expected_best(trials):
    """Mean time of the best of `trials` schedules of the valley drawn without repetition."""
    times = sorted(map(valley_seconds, valley()))
    ways = math.comb(len(times), trials)
    return sum(t * math.comb(len(times) - i - 1, trials - 1) / ways for i, t in enumerate(times))


def made(strategy, space, seed, score=None):
    return strategy(space, np.random.default_rng(seed), Aids(score or (lambda s: np.zeros(len(s)))))


def run(strategy, space, seed, seconds, trials, *, batch=12):
    """A search with its own cost model where the strategy uses one; what it asked, in order."""
    learner = Learner(registry.find(MODELS, strategy.model or "random", "model")(Features(space), seed))
    search = strategy(space, np.random.default_rng(seed), learner.aids({}))
    asked = []
    while len(asked) < trials and (new := search.ask(min(batch, trials - len(asked)))):
        asked += new
        results = [Result(s, seconds(s)) for s in new]
        search.tell(results)
        learner.tell(results)
    return asked


def by_key(schedule):
    return 1.0 + int(schedule.key, 16) % 97


def test_it_is_a_strategy(strategy):
    assert issubclass(strategy, Strategy)
    assert strategy.__doc__


def test_it_asks_new_legal_schedules_and_no_more_than_it_should(strategy):
    space = two_sketches()
    search = made(strategy, space, 0, lambda s: np.array([by_key(x) for x in s]))
    asked = []
    for count in (0, 1, 7, 16, 3, 1, 30):
        new = search.ask(count)
        assert len(new) == count
        asked += new
        search.tell([Result(s, by_key(s)) for s in new])
    assert len(set(asked)) == len(asked)
    assert [space.why_not(s) for s in asked] == [None] * len(asked)


def test_the_same_seed_asks_the_same(strategy):
    runs = [run(strategy, two_sketches(), 3, by_key, 60) for _ in range(2)]
    assert runs[0] == runs[1]


def test_another_seed_asks_otherwise(name, strategy):
    if name != "exhaustive":
        assert run(strategy, two_sketches(), 3, by_key, 20) != run(strategy, two_sketches(), 4, by_key, 20)


@pytest.mark.parametrize("batch", [1, 3, 50])
def test_it_ends_having_asked_everything_once(strategy, batch):
    space = tiny()
    asked = run(strategy, space, 0, by_key, 1000, batch=batch)
    assert sorted(map(str, asked)) == sorted(map(str, space))


def test_it_exhausts_a_space_of_several_sketches(strategy):
    space = two_sketches()
    assert set(run(strategy, space, 0, by_key, 10_000, batch=40)) == set(space)


def test_it_survives_that_everything_fails(strategy):
    space = two_sketches()
    asked = run(strategy, space, 0, lambda _: math.inf, 80)
    assert len(set(asked)) == 80


def test_it_recovers_from_early_failures(strategy):
    seconds = dict.fromkeys(run(strategy, two_sketches(), 1, by_key, 24), math.inf)
    asked = run(strategy, two_sketches(), 1, lambda s: seconds.get(s, by_key(s)), 80)
    assert len(set(asked)) == 80


def test_it_goes_on_while_nothing_is_told(strategy):
    space = two_sketches()
    search = made(strategy, space, 0)
    asked = [s for _ in range(12) for s in search.ask(10)]
    assert len(set(asked)) == 120
    search.tell([Result(s, by_key(s)) for s in reversed(asked)])
    assert not set(search.ask(10)) & set(asked)


def test_it_takes_what_it_never_asked(strategy):
    space = two_sketches()
    done = list(islice(space, 0, 200, 4))
    search = made(strategy, space, 0)
    search.tell([Result(s, by_key(s)) for s in done])
    search.tell([Result(s, by_key(s)) for s in done[:5]])
    asked = [s for _ in range(5) for s in search.ask(8)]
    assert len(set(asked)) == 40
    assert not set(asked) & set(done)


def test_it_ignores_what_is_not_in_the_space(strategy):
    space = tiny()
    search = made(strategy, space, 0)
    search.tell([Result(Schedule(((SKETCH, "gone"), ("a", 1))), 1e-9), Result(Schedule(((SKETCH, "only"),)), 1e-9)])
    assert set(search.ask(100)) == set(space)


def test_it_works_without_a_score(strategy):
    search = strategy(two_sketches(), np.random.default_rng(0))
    asked = search.ask(20)
    search.tell([Result(s, by_key(s)) for s in asked])
    assert len(search.ask(20)) == 20


def test_it_neglects_no_sketch(name, strategy):
    if name != "exhaustive":
        asked = run(strategy, two_sketches(), 0, lambda s: 1.0 if s.sketch == "tiled" else 2.0, 60)
        assert sum(s.sketch == "plain" for s in asked) >= 4


def test_a_sketch_without_legal_schedules_does_not_matter(strategy):
    never = SketchSpace("never", (Knob("a", Family.WARPS, (1, 2)),), (Constraint("never", ("a",), lambda _: False),))
    space = ScheduleSpace((never, *tiny().sketches))
    assert set(run(strategy, space, 0, by_key, 100)) == set(space)


@pytest.mark.parametrize("name", [n for n in registry.names(PACKAGE) if n not in BLIND])
def test_one_that_learns_beats_random_search(name):
    strategy = registry.find(PACKAGE, name, "strategy")
    # A model makes a run less of a gamble, and a hundred times as long.
    seeds, trials = 3 if strategy.model else 10, 96
    found = [min(map(valley_seconds, run(strategy, valley(), seed, valley_seconds, trials))) for seed in range(seeds)]
    assert np.mean(found) - 1e-3 < 0.7 * (expected_best(trials) - 1e-3)
