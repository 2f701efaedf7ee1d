"""The default strategy: what went wrong in others of its kind, each as a test."""

import math

import numpy as np
import pytest

from autotune.strategies import hybrid
from autotune.strategies.base import Result
from autotune.strategies.hybrid import STRATEGY, HybridSearch
from autotune.tuner import Learner
from cost_models.features import Features
from cost_models.models.hybrid import HybridModel
from search_spaces import registry
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

SPACE = ScheduleSpace(
    (SketchSpace("bowl", tuple(Knob(f"k{i}", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32)) for i in range(4))),)
)


def seconds_of(schedule):
    """A bowl with a rough floor, in which some fail."""
    if schedule["k0"] == 32 and schedule["k1"] == 32:
        return math.inf
    bowl = sum((math.log2(v) - 1 - i) ** 2 for i, (_, v) in enumerate(schedule.items[1:]))
    return 1e-3 * (1 + 0.2 * bowl + 0.1 * (int(schedule.key, 16) % 7) / 7)


class Search:
    def __init__(self, seed=0, make=STRATEGY, space=SPACE):
        self.learner = Learner(HybridModel(Features(space), seed))
        self.strategy = make(space, np.random.default_rng(seed), self.learner.aids({}))
        self.asked = []

    def ask(self, count):
        new = self.strategy.ask(count)
        self.asked += new
        return new

    def tell(self, schedules, seconds=seconds_of):
        results = [Result(s, seconds(s)) for s in schedules]
        self.strategy.tell(results)
        self.learner.tell(results)

    def run(self, trials, batch):
        while len(self.asked) < trials and (new := self.ask(min(batch, trials - len(self.asked)))):
            self.tell(new)
        return self.asked


def neighbours(schedule):
    return set(SPACE.neighbours(schedule, np.random.default_rng(0)))


@pytest.mark.parametrize("batch", [1, 4, 8, 56])
def test_only_what_is_asked_counts_as_seen(batch):
    search = Search()
    search.run(60, batch)
    assert search.strategy.seen == set(search.asked)
    assert len(search.asked) == 60


def test_what_was_a_candidate_but_not_asked_is_asked_in_the_end():
    space = ScheduleSpace((SketchSpace("small", SPACE.sketches[0].knobs[:2]),))
    search = Search(space=space)
    while new := search.ask(5):
        search.tell(new, lambda s: 1.0 + int(s.key, 16) % 13)
    assert set(search.asked) == set(space)


@pytest.mark.parametrize("batch", [1, 2])
def test_small_asks_starve_no_arm(batch):
    search = Search()
    choosers = []
    while len(search.asked) < 80:
        new = search.ask(batch)
        choosers += [search.strategy.chooser_of(s) for s in new]
        search.tell(new)
    counts = {name: choosers.count(name) for name in ("improvement", "fast", "throughput", "polish", "explore")}
    assert min(counts.values()) >= 4, counts


def test_the_fastest_is_never_lost():
    search = Search()
    search.run(40, 8)
    best = min(search.strategy.told, key=search.strategy.told.__getitem__)
    # Whatever is told besides, failures and slow ones, it is bred from until its neighbourhood is done.
    search.run(160, 8)
    best = min(search.strategy.told, key=search.strategy.told.__getitem__)
    assert search.strategy.best(1) == [best]
    assert neighbours(best) <= search.strategy.seen


def test_a_schedule_that_turns_out_slow_is_no_incumbent():
    search = Search()
    search.run(40, 4)
    best = search.strategy.best(1)[0]
    search.tell([best], lambda s: math.inf)
    assert best not in search.strategy.best(8)
    assert search.strategy.told[best] == math.inf


def test_results_may_come_in_any_order_and_late():
    search = Search()
    rng = np.random.default_rng(0)
    flying = search.ask(56)
    while len(search.asked) < 150:
        landed = [flying.pop(int(rng.integers(len(flying)))) for _ in range(7)]
        search.tell(landed)
        flying += search.ask(7)
    assert len(set(search.asked)) == len(search.asked) == 154
    assert seconds_of(search.strategy.best(1)[0]) < 1.2e-3


def test_it_asks_at_random_while_nothing_is_known():
    search = Search()
    assert len(set(search.ask(56))) == 56
    search.tell(search.asked, lambda s: math.inf)
    assert len(set(search.ask(20)) - set(search.asked[:56])) == 20


@pytest.mark.parametrize(
    "name", ["NoPrior", "NoPolicy", "NoModel", "NoProcess", "NoClassifier", "NoRegression", "NoPolish"]
)
def test_a_variant_lacks_what_its_name_says(name):
    make = registry.find("autotune.strategies", f"hybrid:{name}", "strategy")
    assert issubclass(make, HybridSearch)
    search = Search(make=make)
    search.run(60, 4)
    assert len(set(search.asked)) == 60


def test_variants_lack_their_arms():
    def choosers(make):
        search = Search(make=make)
        found = set()
        while len(search.asked) < 60:
            new = search.ask(4)
            found |= {search.strategy.chooser_of(s) for s in new}
            search.tell(new)
        return found

    assert choosers(STRATEGY) == {"improvement", "fast", "throughput", "polish", "explore"}
    assert choosers(hybrid.NoPolish) == {"improvement", "fast", "throughput", "explore"}
    assert choosers(hybrid.NoClassifier) == {"improvement", "throughput", "polish", "explore"}
    assert choosers(hybrid.NoRegression) == {"improvement", "fast", "polish", "explore"}
    assert choosers(hybrid.NoProcess) == {"fast", "throughput", "polish", "explore"}
    assert not hybrid.NoPrior.uses_prior
    assert not hybrid.NoModel.model
    assert not hybrid.NoPolicy.policy
