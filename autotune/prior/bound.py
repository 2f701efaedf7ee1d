"""A prior bound to a task: proposes what to measure first, and loses its say where it foretold wrongly."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

import numpy as np

from autotune.adapting import nearest
from autotune.policy.policy import Policy
from autotune.prior.belief import Belief
from autotune.prior.encoding import Encoding
from autotune.prior.experience import FLOOR, Floats
from autotune.prior.source import Source
from autotune.strategies.base import Result
from search_spaces.schedule import Schedule
from search_spaces.space import ScheduleSpace

# A space of at most so many schedules is looked at whole, a larger one through candidates.
WHOLE = 20_000
# Candidates of a large space: at first the like of the fastest of each task, some drawn by the policy and at random;
# then at every proposal a few more of both and from beside the fastest told. All stay candidates.
FASTEST, DRAWN, RANDOM = 32, 256, 256
MORE_DRAWN, MORE_RANDOM, LEADERS, BESIDE = 32, 32, 6, 8
# Results that are followed. A model fitted to more of them knows the task better than any other task does.
FOLLOWED = 256
# Points at hand; of more than these only those that were told are kept.
KEPT = 30_000
# Combinations before limits up to which it is found out how many schedules a space has.
_COMBINATIONS = 200_000
# Breaks ties between points of which no improvement is expected.
_SLIGHT = 1e-9


class BoundPrior:
    """Implements `autotune.strategies.base.TaskPrior`.

    Args:
        space: Of the task.
        context: The task as numbers.
        sources: What was learnt of other tasks, one at least, most alike first.
        errors: Mean squared error that each source is believed to have, in squared doublings, shape (sources,).
        encoding: Of the space's schedules, the sources' own.
        policy: Draws schedules, None where there is none.

    Attributes:
        sources, encoding: As given.
    """

    def __init__(
        self,
        space: ScheduleSpace,
        context: Mapping[str, float],
        sources: Sequence[Source],
        errors: Floats,
        encoding: Encoding,
        policy: Policy | None,
    ) -> None:
        self._space, self._context, self._policy = space, context, policy
        self.sources, self._errors, self.encoding = tuple(sources), errors, encoding
        self._told: dict[Schedule, float] = {}
        whole = list(islice(space, WHOLE + 1)) if space.cartesian <= _COMBINATIONS else []
        self._whole = whole if len(whole) <= WHOLE else []
        self._adapted: list[Schedule] | None = None
        self._begun = False
        self._belief, self._places = self._afresh()

    @property
    def sketches(self) -> frozenset[str]:
        """Those that any source has a table for."""
        return frozenset(name for source in self.sources for name in source.tables)

    def first(self, count: int) -> list[Schedule]:
        """Schedules to begin with, best first, each chosen for what it adds to those before it."""
        return self.propose(np.random.default_rng(0), count, ())

    def score(self, schedules: Sequence[Schedule]) -> Floats:
        """Negative expected improvement on the best told; the believed order where nothing was told."""
        if not schedules:
            return np.zeros(0)
        places = self._located(schedules)
        return -self._gains()[places]

    def sample(self, rng: np.random.Generator) -> Schedule | None:
        """A schedule drawn from the policy; where there is none, one like a fast schedule of another task."""
        if self._policy is not None:
            drawn = self._policy.sample(self._space, self._context, rng, 1)
            return drawn[0] if drawn else None
        near = self._near()
        # Those of the tasks most alike, which come first, more often.
        return near[int(len(near) * rng.random() ** 2)] if near else None

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in; one of a schedule told before replaces the earlier."""
        for result in results:
            known = result.schedule in self._told
            if not known and (len(self._told) >= FOLLOWED or self._space.why_not(result.schedule) is not None):
                continue
            if not known:
                self._belief.condition(self._located([result.schedule])[0])
            self._told[result.schedule] = result.seconds

    def propose(self, rng: np.random.Generator, count: int, seen: Collection[Schedule]) -> list[Schedule]:
        """The schedules to measure next, best first, each chosen as if those before it had been as fast as believed.

        Args:
            rng: Draws the candidates of a space too large to look at whole.
            count: At most so many.
            seen: Never proposed; those of them not yet told count as under way.
        """
        candidates = self._candidates(rng)
        places = np.array(self._located(candidates), np.intp)
        under_way = self._located([s for s in seen if s not in self._told][: FOLLOWED - len(self._told)])
        free = np.array([s not in seen and s not in self._told for s in candidates], np.bool_)
        before = self._belief.measured
        for place in under_way:
            self._belief.condition(place)
        chosen: list[Schedule] = []
        while len(chosen) < count and free.any():
            pick = int(np.argmax(np.where(free, self._gains()[places], -np.inf)))
            free[pick] = False
            chosen.append(candidates[pick])
            self._belief.condition(int(places[pick]))
        self._belief.forget(self._belief.measured - before)
        return chosen

    def _gains(self) -> Floats:
        """Expected improvement of every point, or its believed speed where nothing was measured or is under way."""
        if not self._belief.measured:
            return self._belief.mean(np.zeros(0))
        seconds = np.array(list(self._told.values()), np.float64)
        fine = np.isfinite(seconds)
        speeds = np.full(self._belief.measured, np.nan)
        speeds[: len(seconds)] = -FLOOR
        if fine.any():
            speeds[: len(seconds)][fine] = np.maximum(np.log2(seconds[fine].min() / seconds[fine]), -FLOOR)
        mean = self._belief.mean(speeds)
        told = speeds[: len(seconds)]
        best = float(told.max()) if len(told) else float(mean[self._belief.points].max())
        return self._belief.improvement(mean, best) + _SLIGHT * mean

    def _candidates(self, rng: np.random.Generator) -> list[Schedule]:
        """The whole space, or what may be fast in a large one."""
        if self._whole:
            return self._whole
        found = [*self._places]
        if self._begun:
            drawn, random = MORE_DRAWN, MORE_RANDOM
        else:
            drawn, random = DRAWN, RANDOM
            found += self._near()
        self._begun = True
        if self._policy is not None:
            found += self._policy.sample(self._space, self._context, rng, drawn)
        found += [s for s in (self._space.sample(rng) for _ in range(random)) if s is not None]
        for leader in sorted(self._told, key=self._told.__getitem__)[:LEADERS]:
            found += islice(self._space.neighbours(leader, rng), BESIDE)
        return list(dict.fromkeys(found))

    def _near(self) -> list[Schedule]:
        """Schedules of the space like the fastest of other tasks, those of the tasks nearest to it first."""
        if self._adapted is None:
            found = (
                nearest(self._space, sketch, wanted)
                for source in self.sources
                for sketch in source.tables
                for wanted in source.fastest(sketch, FASTEST)
            )
            self._adapted = list(dict.fromkeys(s for s in found if s is not None))
        return self._adapted

    def _located(self, schedules: Sequence[Schedule]) -> list[int]:
        """Their points; what is new becomes one."""
        new = list(dict.fromkeys(s for s in schedules if s not in self._places))
        if new and self._belief.size + len(new) > KEPT:
            self._belief, self._places = self._afresh()
            new = list(dict.fromkeys(s for s in schedules if s not in self._places))
        if new:
            self._add(self._belief, self._places, new)
        return [self._places[s] for s in schedules]

    def _afresh(self) -> tuple[Belief, dict[Schedule, int]]:
        """A belief of what was told alone."""
        belief, places = Belief(self._errors, self.encoding.columns), dict[Schedule, int]()
        if self._told:
            self._add(belief, places, list(self._told))
        for schedule in self._told:
            belief.condition(places[schedule])
        return belief, places

    def _add(self, belief: Belief, places: dict[Schedule, int], new: Sequence[Schedule]) -> None:
        rows = self.encoding(new)
        said = np.array([-source.slowdown(new, rows) for source in self.sources])
        known = ~np.isnan(said)
        # Of a sketch that a task does not know the others speak; of one that none knows nothing is expected.
        others = np.where(known, said, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        others = np.where(known.any(axis=0), others, -FLOOR / 2)
        places |= {s: belief.size + i for i, s in enumerate(new)}
        belief.add(np.where(known, said, others), self.encoding.standard(rows))
