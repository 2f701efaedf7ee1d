"""Search guided by a cost model: the neighbourhood of the fastest schedules, ranked, with a share of exploration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from autotune.strategies.base import Aids, Strategy
from search_spaces.space import SKETCH, Schedule, ScheduleSpace

WARM_UP = 16
# Every sketch is tried this often before the model alone decides about it.
FAIR_TRIES = 6
INCUMBENTS = 8
# The best of so many further sketches are bred from as well.
LEADERS = 4
# A knob of many values offers only some of them, or it would drown the others.
VALUES_PER_KNOB = 12
DOUBLE_MUTATIONS = 16
CROSSES = 32
RANDOM = 384
# Of the random candidates so many are new in every ask; the others were not chosen before.
RENEWED = 96
# Share of an ask that explores: any of the pool, or the best of sketches not yet tried often enough.
EXPLORE = 0.12
EXPLORE_SKETCHES = 0.25
# Random candidates of which the one most unlike those asked before is taken during the warm-up.
SPREAD = 4


class ModelGuidedSearch(Strategy):
    """Random at first, spread over the sketches; then what the model ranks highest in a pool of candidates.

    The pool is bred anew for every ask: all neighbours of the fastest schedules, some of their double mutations and
    crossings, and fresh random schedules. So the whole neighbourhood of the best is tried before the search can end.
    """

    model = "xgb"

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._tries: Counter[str] = Counter()
        self._spent: set[str] = set()
        self._random: list[Schedule | None] = []

    def ask(self, count: int) -> list[Schedule]:
        """The pool's most promising schedules and some for exploration."""
        asked: list[Schedule] = []
        self._tries = Counter(s.sketch for s in self.seen)
        while len(asked) < count and len(self.seen) < WARM_UP:
            spread = self._spread()
            if spread is None:
                break
            self._take(spread, asked)
        if len(asked) < count:
            self._take_ranked(count - len(asked), asked)
        # The pool was too small: what is left of the space.
        return asked + self.fresh_many(count - len(asked))

    def _take(self, schedule: Schedule, asked: list[Schedule]) -> None:
        self.seen.add(schedule)
        self._tries[schedule.sketch] += 1
        asked.append(schedule)

    def _take_new(self, schedules: Iterable[Schedule], count: int, asked: list[Schedule]) -> None:
        for schedule in islice((s for s in schedules if s not in self.seen), count):
            self._take(schedule, asked)

    def _spread(self) -> Schedule | None:
        """A random schedule of the sketch tried least, unlike those seen."""
        open_ones = [s.sketch for s in self.space.sketches if s.sketch not in self._spent]
        for sketch in sorted(open_ones, key=lambda name: self._tries[name]):
            drawn = [self.fresh(Schedule(((SKETCH, sketch),)))]
            if drawn[0] is not None:
                drawn += [self.fresh(Schedule(((SKETCH, sketch),))) for _ in range(SPREAD - 1)]
                return max((s for s in drawn if s is not None), key=self._distance)
            self._spent.add(sketch)
        return self.fresh()

    def _distance(self, schedule: Schedule) -> int:
        """Knobs in which it differs from the most similar schedule seen."""
        own = schedule.items
        rivals = (s.items for s in self.seen if s.sketch == schedule.sketch)
        return min((sum(a != b for a, b in zip(own, other, strict=True)) for other in rivals), default=len(own))

    def _take_ranked(self, count: int, asked: list[Schedule]) -> None:
        """Adds the `count` most promising of the pool, at least a few of them for exploration."""
        pool = self._pool()
        if not pool:
            return
        scores = np.zeros(len(pool)) if self.aids.score is None else self.aids.score(pool)
        ranked = [pool[i] for i in np.argsort(scores, kind="stable")]
        starved = [s for s in ranked if self._tries[s.sketch] < FAIR_TRIES]
        # Rounded at random, so that a small ask explores at times instead of never.
        share = EXPLORE_SKETCHES if starved else EXPLORE
        exploring = min(count, math.floor(count * share + self.rng.random()))
        others = (ranked[i] for i in self.rng.permutation(len(ranked)))
        self._take_new(chain(starved, others), exploring, asked)
        self._take_new(ranked, count - exploring, asked)

    def _pool(self) -> list[Schedule]:
        """Distinct candidates never seen, in random order so that equal scores prefer none."""
        found = dict.fromkeys(s for s in self._candidates() if s is not None and s not in self.seen)
        pool = list(found)
        return [pool[i] for i in self.rng.permutation(len(pool))]

    def _candidates(self) -> Iterator[Schedule | None]:
        incumbents = self._incumbents()
        for incumbent in incumbents:
            near = [s for s in self._near(incumbent) if s is not None]
            yield from near
            for _ in range(min(DOUBLE_MUTATIONS, len(near))):
                yield self.space.mutate(near[int(self.rng.integers(len(near)))], self.rng)
        for _ in range(CROSSES if len(incumbents) > 1 else 0):
            yield self._crossed(incumbents)
        kept = [s for s in self._random if s is not None and s not in self.seen][RENEWED - RANDOM :]
        self._random = [*kept, *(self.space.sample(self.rng) for _ in range(RANDOM - len(kept)))]
        yield from self._random

    def _incumbents(self) -> list[Schedule]:
        """The fastest told and the fastest of further sketches."""
        ranked = self.best(len(self.told))
        leaders = {s.sketch: s for s in reversed(ranked)}
        others = sorted((s for s in leaders.values() if s not in ranked[:INCUMBENTS]), key=self.told.__getitem__)
        return ranked[:INCUMBENTS] + others[:LEADERS]

    def _near(self, schedule: Schedule) -> Iterator[Schedule | None]:
        """Its neighbours, of each knob a random selection of values."""
        for knob in self.space.sketch(schedule.sketch).knobs:
            for index in self.rng.permutation(len(knob.values))[:VALUES_PER_KNOB]:
                yield self.space.changed(schedule, knob.name, knob.values[index])

    def _crossed(self, incumbents: Sequence[Schedule]) -> Schedule | None:
        one, other = (incumbents[i] for i in self.rng.choice(len(incumbents), size=2, replace=False))
        return self.space.cross(one, other, self.rng) if one.sketch == other.sketch else None


STRATEGY = ModelGuidedSearch
