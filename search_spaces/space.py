"""Knobs, constraints, schedules and the space they span.

A space is a tree: the first decision is the sketch, the next ones are that sketch's knobs in order.
`options(prefix)` gives the legal values of the next decision; sampling, mutation, enumeration, beam
search and a policy's action mask are all written over it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from search_spaces.errors import InvalidSchedule, UnknownName

Value = int | str | bool | tuple[int, ...]
SKETCH = "sketch"


class Family(StrEnum):
    """What a knob decides, by the names that users look for."""

    TILE_SIZES = "tile sizes"
    VECTOR_WIDTH = "vector width"
    LOOP_ORDER = "loop order"
    SHARED_MEMORY = "shared-memory allocation"
    WARPS = "warps"
    REGISTERS = "registers"
    UNROLLING = "unrolling"
    PERSISTENCE = "persistence"
    PARALLELISM = "parallelism"


@dataclass(frozen=True)
class Knob:
    """One decision of a sketch.

    Attributes:
        name: Unique within its sketch.
        family: What it decides.
        values: The candidates, at least one, all of one type.
        runtime: True where changing it needs no new binary.
    """

    name: str
    family: Family
    values: tuple[Value, ...]
    runtime: bool = False

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise ValueError(f"knob {self.name}: values must be present and distinct, got {self.values}")


@dataclass(frozen=True)
class Constraint:
    """A limit that a schedule must keep, asked as soon as the knobs it names are decided.

    Attributes:
        reason: What a schedule that breaks it does wrong, as shown to users ("needs more shared memory than ...").
        knobs: Names whose values `holds` takes, in this order.
        holds: Whether the values keep the limit.
    """

    reason: str
    knobs: tuple[str, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Schedule:
    """A point in a space: the sketch's name and a value for each of its knobs; a shorter one is a prefix."""

    items: tuple[tuple[str, Value], ...] = ()

    def __getitem__(self, name: str) -> Value:
        for key, value in self.items:
            if key == name:
                return value
        raise KeyError(name)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        knobs = " ".join(f"{k}={_text(v)}" for k, v in self.items[1:])
        return f"{self.sketch} {knobs}".strip()

    @property
    def sketch(self) -> str:
        """The name of the sketch, "" in the empty prefix."""
        return str(self.items[0][1]) if self.items else ""

    @property
    def knobs(self) -> dict[str, Value]:
        """The knobs alone, in order."""
        return dict(self.items[1:])

    def integer(self, name: str) -> int:
        """The value of an integer knob."""
        value = self[name]
        if not isinstance(value, int):
            raise InvalidSchedule(f"knob {name} is {value!r}, not an integer")
        return value

    def extended(self, name: str, value: Value) -> Schedule:
        """This prefix with one more decision."""
        return Schedule((*self.items, (name, value)))

    def to_json(self) -> dict[str, object]:
        """A plain dict, tuples as lists; `from_json` is its inverse."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.items}

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Schedule:
        """Reads what `to_json` wrote, or raises InvalidSchedule."""
        if next(iter(data), None) != SKETCH:
            raise InvalidSchedule(f"a schedule starts with its '{SKETCH}', got {list(data)[:3]}")
        return Schedule(tuple((k, _value(k, v)) for k, v in data.items()))

    @cached_property
    def key(self) -> str:
        """A short stable hash of the schedule."""
        return digest(self.to_json())


def digest(data: object) -> str:
    """First 16 hex digits of the sha256 of the canonical JSON of `data`."""
    return hashlib.sha256(json.dumps(data, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def _text(value: Value) -> str:
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(name: str, value: object) -> Value:
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
        return tuple(value)
    raise InvalidSchedule(f"knob {name} has the value {value!r}, which no knob can have")


@dataclass(frozen=True)
class SketchSpace:
    """The knobs of one sketch for one task, in decision order, with their limits."""

    sketch: str
    knobs: tuple[Knob, ...]
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def cartesian(self) -> int:
        """Combinations before any limit."""
        return math.prod(len(k.values) for k in self.knobs)

    @cached_property
    def _due(self) -> tuple[tuple[Constraint, ...], ...]:
        """For each knob the constraints that it completes."""
        order = {k.name: i for i, k in enumerate(self.knobs)}
        due: list[list[Constraint]] = [[] for _ in self.knobs]
        for constraint in self.constraints:
            due[max(order[name] for name in constraint.knobs)].append(constraint)
        return tuple(map(tuple, due))

    def broken(self, values: Mapping[str, Value], depth: int) -> Constraint | None:
        """The first constraint completed by knob number `depth` that `values` break."""
        for constraint in self._due[depth]:
            if not constraint.holds(*(values[name] for name in constraint.knobs)):
                return constraint
        return None


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
                [[k.name, k.family, list(map(_text, k.values))] for k in s.knobs],
                [c.reason for c in s.constraints],
            ]
            for s in self.sketches
        ]
        return digest([shape, self.identity])

    @cached_property
    def cartesian(self) -> int:
        """Combinations before any limit."""
        return sum(s.cartesian for s in self.sketches)

    def options(self, prefix: Schedule) -> tuple[Value, ...]:
        """Legal values of the next decision; () where the schedule is complete or the prefix is a dead end.

        A value offered may still lead to a dead end further down; `complete` backtracks out of it.
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
            if values[knob.name] not in knob.values:
                return f"{knob.name}={_text(values[knob.name])} is not a value of that knob"
            constraint = sketch.broken(values, depth)
            if constraint is not None:
                return constraint.reason
        return None

    def complete(
        self, prefix: Schedule, order: Callable[[Schedule, tuple[Value, ...]], Sequence[Value]]
    ) -> Schedule | None:
        """Completes `prefix` depth first, trying each decision's options in the order that `order` gives."""
        name = self.next_knob(prefix)
        if name is None:
            return prefix
        for value in order(prefix, self.options(prefix)):
            found = self.complete(prefix.extended(name, value), order)
            if found is not None:
                return found
        return None

    def sample(self, rng: np.random.Generator, prefix: Schedule | None = None) -> Schedule | None:
        """A random legal completion of `prefix`: sketches by size, then uniform over each decision's options."""

        def shuffled(at: Schedule, options: tuple[Value, ...]) -> Sequence[Value]:
            if not at.items and len(options) > 1:
                weights = np.array([math.log1p(self.sketch(str(o)).cartesian) for o in options])
                picks = rng.choice(len(options), size=len(options), replace=False, p=weights / weights.sum())
            else:
                picks = rng.permutation(len(options))
            return [options[i] for i in picks]

        return self.complete(prefix or Schedule(), shuffled)

    def neighbours(self, schedule: Schedule, rng: np.random.Generator) -> Iterator[Schedule]:
        """Every legal schedule that differs in exactly one knob, in random order."""
        sketch = self.sketch(schedule.sketch)
        moves = [(i, v) for i, k in enumerate(sketch.knobs, start=1) for v in k.values if v != schedule.items[i][1]]
        for move in rng.permutation(len(moves)):
            index, value = moves[move]
            items = list(schedule.items)
            items[index] = (items[index][0], value)
            changed = Schedule(tuple(items))
            if self.why_not(changed) is None:
                yield changed

    def mutate(self, schedule: Schedule, rng: np.random.Generator) -> Schedule | None:
        """A random neighbour, or None where `schedule` has none."""
        return next(self.neighbours(schedule, rng), None)

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
        """Counts legal and refused schedules: exactly up to `limit` constrained combinations a sketch, else by sampling."""
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
    draws: Iterator[tuple[int, ...]] = (
        np.ndindex(*(len(k.values) for k in knobs))
        if exact
        else (tuple(int(rng.integers(len(k.values))) for k in knobs) for _ in range(limit // 10))
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
