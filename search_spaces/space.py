"""The space of schedules that knobs and constraints span.

A space is a tree: the first decision is the sketch, the next ones are that sketch's knobs in order.
`options(prefix)` gives the legal values of the next decision; all else is written over it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from search_spaces.errors import UnknownName
from search_spaces.knob import Constraint, Family, Knob
from search_spaces.schedule import SKETCH, Schedule, Value, digest, text

__all__ = [
    "SKETCH",
    "Constraint",
    "Family",
    "Knob",
    "Schedule",
    "ScheduleSpace",
    "SketchSpace",
    "SpaceSize",
    "Value",
    "digest",
]

# Draws tried before `sample` descends the tree instead: where one in a hundred is legal it is still sampled uniformly.
_BLOCKS = (2, 6, 24, 96, 128)


@dataclass(frozen=True)
class SketchSpace:
    """The knobs of one sketch for one task, in decision order, with their limits."""

    sketch: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...] = ()

    def __post_init__(self) -> None:
        names = [k.name for k in self.knobs]
        if len({SKETCH, *names}) != len(names) + 1:
            raise ValueError(f"{self.sketch}: knob names must be distinct and none '{SKETCH}', got {names}")
        for constraint in self.constraints:
            if not constraint.knobs or not set(constraint.knobs) <= set(names):
                raise ValueError(f"{self.sketch}: the limit '{constraint.reason}' names {constraint.knobs} of {names}")

    @cached_property
    def cartesian(self) -> int:
        """Combinations before any limit."""
        return math.prod(len(k.values) for k in self.knobs)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """The place of each knob in the order of decisions."""
        return {k.name: i for i, k in enumerate(self.knobs)}

    @cached_property
    def allowed(self) -> tuple[frozenset[Value], ...]:
        """For each knob its values, for fast membership."""
        return tuple(frozenset(k.values) for k in self.knobs)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        return np.array([len(k.values) for k in self.knobs], np.int64)

    @cached_property
    def _due(self) -> tuple[tuple[Constraint, ...], ...]:
        """For each knob the constraints that it completes."""
        due: list[list[Constraint]] = [[] for _ in self.knobs]
        for constraint in self.constraints:
            due[max(self.position[name] for name in constraint.knobs)].append(constraint)
        return tuple(map(tuple, due))

    @cached_property
    def _naming(self) -> tuple[tuple[Constraint, ...], ...]:
        """For each knob the constraints that its value can break."""
        return tuple(tuple(c for c in self.constraints if k.name in c.knobs) for k in self.knobs)

    @cached_property
    def _pairs(self) -> tuple[dict[Value, tuple[str, Value]], ...]:
        """For each knob its name with each value: schedules share these, so that many of them take little memory."""
        return tuple({v: (k.name, v) for v in k.values} for k in self.knobs)

    @cached_property
    def _head(self) -> tuple[str, Value]:
        return (SKETCH, self.sketch)

    def at(self, values: Mapping[str, Value]) -> Schedule:
        """The schedule with these values of the first knobs, in their order."""
        return Schedule((self._head, *[pair[v] for pair, v in zip(self._pairs, values.values(), strict=False)]))

    def moved(self, schedule: Schedule, depth: int, value: Value) -> Schedule:
        """The schedule with another value of knob number `depth`."""
        items = schedule.items
        return Schedule((*items[: depth + 1], self._pairs[depth][value], *items[depth + 2 :]))

    def broken(self, values: Mapping[str, Value], depth: int) -> Constraint | None:
        """The first constraint completed by knob number `depth` that `values` break."""
        for constraint in self._due[depth]:
            if not constraint.holds(*(values[name] for name in constraint.knobs)):
                return constraint
        return None

    def keeps(self, values: Mapping[str, Value], depth: int) -> bool:
        """Whether a complete legal point stays legal after knob number `depth` was changed to what `values` hold."""
        return all(c.holds(*(values[name] for name in c.knobs)) for c in self._naming[depth])

    def draw(self, rng: np.random.Generator, given: Mapping[str, Value]) -> dict[str, Value] | None:
        """Random values of the knobs after `given`: uniform over legal points where those are not rare."""
        decided = len(given)
        free = list(enumerate(self.knobs[decided:], start=decided))
        counts = self._counts[decided:]
        for block in _BLOCKS:
            # Several times as fast as integers with a limit for each column.
            for picks in (rng.random((block, len(free))) * counts).astype(np.int64).tolist():
                values = dict(given)
                for (depth, knob), pick in zip(free, picks, strict=True):
                    values[knob.name] = knob.values[pick]
                    if self._due[depth] and self.broken(values, depth) is not None:
                        break
                else:
                    return values
        return self.descend(given, lambda knob, _: (knob.values[i] for i in rng.permutation(len(knob.values))))

    @cached_property
    def before(self) -> tuple[frozenset[int], ...]:
        """For each knob the earlier ones on which it depends what is legal."""
        named = [{self.position[name] for c in due for name in c.knobs} for due in self._due]
        return tuple(frozenset(places - {depth}) for depth, places in enumerate(named))

    def descend(
        self, given: Mapping[str, Value], order: Callable[[Knob, Mapping[str, Value]], Iterable[Value]]
    ) -> dict[str, Value] | None:
        """Depth first the first legal values after `given`; checks only those tried.

        A dead end is left for the latest knob that has a part in it (Prosser, "Hybrid Algorithms for the Constraint
        Satisfaction Problem", 1993): one knob at a time would try all values of those that have none.

        Args:
            given: Values of the first knobs.
            order: Of a knob, given the values of those before it; what it leaves out, it always leaves out.
        """
        values = dict(given)
        decided = len(given)
        tried: list[Iterator[Value]] = []
        culprits: list[set[int]] = []
        while (depth := decided + len(tried)) < len(self.knobs):
            tried.append(iter(order(self.knobs[depth], values)))
            culprits.append(set(self.before[depth]))
            while not self._advance(values, decided + len(tried) - 1, tried[-1]):
                blamed = culprits[-1]
                back = max(blamed, default=-1) - decided
                if back < 0:
                    return None
                for knob in self.knobs[decided + back + 1 :]:
                    values.pop(knob.name, None)
                del tried[back + 1 :], culprits[back + 1 :]
                culprits[back] |= blamed - {decided + back}
        return values

    def _advance(self, values: dict[str, Value], depth: int, candidates: Iterator[Value]) -> bool:
        """Sets knob number `depth` to the next candidate that breaks nothing."""
        for value in candidates:
            values[self.knobs[depth].name] = value
            if self.broken(values, depth) is None:
                return True
        return False


@dataclass(frozen=True)
class SpaceSize:
    """How large a space is and what its limits refuse.

    Attributes:
        cartesian: Combinations before limits.
        legal: Schedules that keep every limit.
        rejected: Combinations refused, by reason (the first that each breaks).
        exact: False where the space was sampled rather than enumerated.
    """

    cartesian: int
    legal: int
    rejected: Mapping[str, int]
    exact: bool


@dataclass(frozen=True)
class ScheduleSpace:
    """All schedules of a task: the sketches that apply, each with its knobs.

    Attributes:
        sketches: In the order in which they are offered.
        identity: Hash of what else defines the space (sketch sources, hardware limits).
    """

    sketches: tuple[SketchSpace, ...]
    identity: str = ""
    _by_name: dict[str, SketchSpace] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._by_name.update({s.sketch: s for s in self.sketches})

    def sketch(self, name: str) -> SketchSpace:
        """The space of one sketch by name."""
        if name not in self._by_name:
            raise UnknownName.of("sketch", name, self._by_name)
        return self._by_name[name]

    @cached_property
    def fingerprint(self) -> str:
        """Changes whenever a knob, value, limit, sketch source or hardware limit does."""
        shape = [
            [
                s.sketch,
                [[k.name, k.family, list(map(repr, k.values))] for k in s.knobs],
                [c.reason for c in s.constraints],
            ]
            for s in self.sketches
        ]
        return digest([shape, self.identity])

    @cached_property
    def cartesian(self) -> int:
        """Combinations before any limit."""
        return sum(s.cartesian for s in self.sketches)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        return np.array([math.log1p(s.cartesian) for s in self.sketches])

    def options(self, prefix: Schedule) -> tuple[Value, ...]:
        """Legal values of the next decision; () where the schedule is complete or the prefix is a dead end.

        A value offered may still lead to a dead end further down; `complete` finds out of it.
        """
        if not prefix.items:
            return tuple(s.sketch for s in self.sketches)
        sketch = self.sketch(prefix.sketch)
        depth = len(prefix) - 1
        if depth == len(sketch.knobs):
            return ()
        knob = sketch.knobs[depth]
        values = prefix.knobs
        legal = []
        for value in knob.values:
            values[knob.name] = value
            if sketch.broken(values, depth) is None:
                legal.append(value)
        return tuple(legal)

    def next_knob(self, prefix: Schedule) -> str | None:
        """Name of the next decision, None where the schedule is complete."""
        if not prefix.items:
            return SKETCH
        knobs = self.sketch(prefix.sketch).knobs
        return knobs[len(prefix) - 1].name if len(prefix) - 1 < len(knobs) else None

    def why_not(self, schedule: Schedule) -> str | None:
        """Why `schedule` is not a complete legal point of this space, or None."""
        if schedule.sketch not in self._by_name:
            return f"sketch '{schedule.sketch}' does not apply"
        sketch = self._by_name[schedule.sketch]
        if [k for k, _ in schedule.items[1:]] != [k.name for k in sketch.knobs]:
            return f"its knobs are not those of {schedule.sketch}"
        values = schedule.knobs
        for depth, knob in enumerate(sketch.knobs):
            if values[knob.name] not in sketch.allowed[depth]:
                return f"{knob.name}={text(values[knob.name])} is not a value of that knob"
            constraint = sketch.broken(values, depth)
            if constraint is not None:
                return constraint.reason
        return None

    def complete(
        self, prefix: Schedule, order: Callable[[Schedule, tuple[Value, ...]], Sequence[Value]]
    ) -> Schedule | None:
        """Completes `prefix` depth first in the order that `order` gives; what it leaves out, it always leaves out."""
        if not prefix.items:
            begun = (prefix.extended(SKETCH, sketch) for sketch in order(prefix, self.options(prefix)))
            return next((found for p in begun if (found := self.complete(p, order)) is not None), None)
        sketch = self.sketch(prefix.sketch)

        def ordered(_: Knob, values: Mapping[str, Value]) -> Sequence[Value]:
            here = sketch.at(values)
            return order(here, self.options(here))

        values = sketch.descend(prefix.knobs, ordered)
        return None if values is None else sketch.at(values)

    def sample(self, rng: np.random.Generator, prefix: Schedule | None = None) -> Schedule | None:
        """A random legal completion of `prefix`: sketches by the logarithm of their size, None where there is none."""
        if prefix is not None and prefix.items:
            sketch = self.sketch(prefix.sketch)
            values = sketch.draw(rng, prefix.knobs)
            return None if values is None else sketch.at(values)
        # Smallest of exponential waiting times: a weighted order without replacement.
        for pick in np.argsort(rng.exponential(size=len(self.sketches)) / self._weights):
            sketch = self.sketches[int(pick)]
            values = sketch.draw(rng, {})
            if values is not None:
                return sketch.at(values)
        return None

    def changed(self, schedule: Schedule, knob: str, value: Value) -> Schedule | None:
        """The legal `schedule` with another value of one knob, None where that breaks a limit."""
        sketch = self.sketch(schedule.sketch)
        values = schedule.knobs
        values[knob] = value
        depth = sketch.position[knob]
        return sketch.moved(schedule, depth, value) if sketch.keeps(values, depth) else None

    def neighbours(self, schedule: Schedule, rng: np.random.Generator) -> Iterator[Schedule]:
        """Every legal schedule that differs from the legal `schedule` in exactly one knob, in random order."""
        now = schedule.knobs
        moves = [(k.name, v) for k in self.sketch(schedule.sketch).knobs for v in k.values if v != now[k.name]]
        for move in rng.permutation(len(moves)):
            knob, value = moves[move]
            changed = self.changed(schedule, knob, value)
            if changed is not None:
                yield changed

    def mutate(self, schedule: Schedule, rng: np.random.Generator) -> Schedule | None:
        """A random neighbour, each knob being as likely to change; None where `schedule` has none."""
        knobs = self.sketch(schedule.sketch).knobs
        for pick in rng.permutation(len(knobs)):
            knob = knobs[pick]
            for index in rng.permutation(len(knob.values)):
                changed = self.changed(schedule, knob.name, knob.values[index])
                if changed is not None and changed != schedule:
                    return changed
        return None

    def cross(self, first: Schedule, second: Schedule, rng: np.random.Generator) -> Schedule | None:
        """A legal mixture of two schedules of one sketch: a value of neither only where both would break a limit."""
        sketch = self.sketch(first.sketch)
        one, other = first.knobs, second.knobs

        def order(knob: Knob, _: Mapping[str, Value]) -> Iterator[Value]:
            pair = (one[knob.name], other[knob.name])
            yield from pair if rng.random() < 0.5 else pair[::-1]
            for index in rng.permutation(len(knob.values)):
                yield knob.values[index]

        values = sketch.descend({}, order)
        return None if values is None else sketch.at(values)

    def __iter__(self) -> Iterator[Schedule]:
        """Every legal schedule, in the order of sketches, knobs and values."""
        stack = [Schedule()]
        while stack:
            prefix = stack.pop()
            name = self.next_knob(prefix)
            if name is None:
                yield prefix
            else:
                stack.extend(prefix.extended(name, value) for value in reversed(self.options(prefix)))

    def size(self, rng: np.random.Generator, limit: int = 200_000) -> SpaceSize:
        """Counts legal and refused schedules: exactly up to `limit` constrained combinations a sketch, else sampled."""
        legal, exact = 0, True
        rejected: Counter[str] = Counter()
        for sketch in self.sketches:
            part = _sketch_size(sketch, rng, limit)
            legal += part.legal
            exact &= part.exact
            rejected.update(part.rejected)
        return SpaceSize(self.cartesian, legal, dict(rejected), exact)


def _sketch_size(sketch: SketchSpace, rng: np.random.Generator, limit: int) -> SpaceSize:
    """Counts over the knobs that some constraint names; the others multiply."""
    named = {name for c in sketch.constraints for name in c.knobs}
    knobs = [k for k in sketch.knobs if k.name in named]
    factor = math.prod(len(k.values) for k in sketch.knobs if k.name not in named)
    combinations = math.prod(len(k.values) for k in knobs)
    exact = combinations <= limit
    draws: Iterator[Sequence[int]] = (
        np.ndindex(*(len(k.values) for k in knobs))
        if exact
        else iter(rng.integers([len(k.values) for k in knobs], size=(limit // 10, len(knobs))).tolist())
    )
    kept = 0
    rejected: Counter[str] = Counter()
    for indices in draws:
        values = {k.name: k.values[i] for k, i in zip(knobs, indices, strict=True)}
        reason = next((c.reason for c in sketch.constraints if not c.holds(*(values[n] for n in c.knobs))), None)
        if reason is None:
            kept += 1
        else:
            rejected[reason] += 1
    scale = factor if exact else factor * combinations / (limit // 10)
    return SpaceSize(sketch.cartesian, round(kept * scale), {r: round(n * scale) for r, n in rejected.items()}, exact)
