"""A sample for recordings: the same seed draws the same schedules, and for other shapes of an operator as far as legal.

Every value of a knob has its own random numbers, one a draw, and of a knob's values the one with the smallest number
is drawn (min-hashing: Broder, "On the resemblance and containment of documents", 1997). So two spaces that share
values draw the same schedules, and each takes those of them that keep its limits: uniform over the legal schedules of
a sketch. Sketches take turns by the logarithm of their size, as in `ScheduleSpace.sample`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from autotune.strategies.base import Aids, Strategy
from search_spaces.space import Schedule, ScheduleSpace, SketchSpace, digest

_BLOCK = 256
# Draws in a row that gave nothing new; then a sketch is taken to be exhausted, or its legal schedules to be rare.
_FUTILE = 16_384


class SampleSearch(Strategy):
    """Random schedules in an order that the seed alone decides, whatever is told."""

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._seed = int(rng.integers(2**32))
        self._unasked = (s for s in self._in_order() if s not in self.seen)

    def ask(self, count: int) -> list[Schedule]:
        """The next schedules of the sample; what is rare among them last."""
        asked = list(islice(self._unasked, count))
        self.seen.update(asked)
        return asked + self.fresh_many(count - len(asked))

    def _in_order(self) -> Iterator[Schedule]:
        """Schedules by turns of the sketches: to each turn the one with the shortest weighted waiting time."""
        streams = {s.sketch: self._of_sketch(s) for s in self.space.sketches}
        waits = {s.sketch: (self._numbers(s.sketch), math.log1p(s.cartesian)) for s in self.space.sketches}
        while streams:
            turn = {name: own.exponential() / weight for name, (own, weight) in waits.items()}
            name = min(streams, key=turn.__getitem__)
            drawn = next(streams[name], None)
            if drawn is None:
                del streams[name]
            else:
                yield drawn

    def _of_sketch(self, sketch: SketchSpace) -> Iterator[Schedule]:
        """Distinct legal schedules of one sketch."""
        numbers = [[self._numbers(sketch.sketch, k.name, repr(v)) for v in k.values] for k in sketch.knobs]
        drawn: set[Schedule] = set()
        futile = 0
        while futile < _FUTILE:
            picks = [np.argmin([own.random(_BLOCK) for own in knob], axis=0).tolist() for knob in numbers]
            for pick in zip(*picks, strict=True) if picks else [()]:
                futile += 1
                values = {k.name: k.values[i] for k, i in zip(sketch.knobs, pick, strict=True)}
                if any(sketch.broken(values, depth) for depth in range(len(pick))):
                    continue
                schedule = sketch.at(values)
                if schedule not in drawn:
                    futile = 0
                    drawn.add(schedule)
                    yield schedule

    def _numbers(self, *words: str) -> np.random.Generator:
        """Random numbers that belong to what the words name."""
        return np.random.default_rng((self._seed, int(digest(words), 16)))


STRATEGY = SampleSearch
