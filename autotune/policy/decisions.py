"""The decisions of a space in order, with the mask of what may still be chosen."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.policy.encoding import encoded
from search_spaces.knob import Constraint
from search_spaces.schedule import SKETCH, Schedule, Value
from search_spaces.space import ScheduleSpace, SketchSpace

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]
# Answers of a constraint that are kept: enough for a search, and a bound on its memory.
_ANSWERS = 20_000


@dataclass(frozen=True)
class Decision:
    """One decision, its values as numbers.

    Attributes:
        name: `sketch` for the first one, else the sketch and the knob.
        values: To choose from.
        names: Names of the numbers that describe a value.
        numbers: Shape (values, names).
    """

    name: str
    values: tuple[Value, ...]
    names: tuple[str, ...]
    numbers: NDArray[np.float64]

    @staticmethod
    def of(name: str, values: Sequence[Value]) -> Decision:
        """The decision between `values`."""
        return Decision(name, tuple(values), *encoded(name, values))

    @cached_property
    def code(self) -> dict[Value, int]:
        """The place of each value."""
        return {value: i for i, value in enumerate(self.values)}


class Limit:
    """A constraint as masks of the knob that completes it; what was asked once is remembered.

    Attributes:
        depth: Place of that knob.
        earlier: Places of the other decisions that it depends on, the sketch being decision 0.
    """

    def __init__(self, constraint: Constraint, sketch: SketchSpace) -> None:
        places = [sketch.position[name] for name in constraint.knobs]
        self.depth = max(places)
        self._constraint = constraint
        self.earlier = [p + 1 for p in places if p != self.depth]
        self._own = places.index(self.depth)
        self._values = [sketch.knobs[p].values for p in places if p != self.depth]
        self._choices = sketch.knobs[self.depth].values
        sizes = [len(values) for values in self._values]
        # A row of places as one number; of Python's integers where those of 64 bits do not suffice.
        fits = math.prod(sizes) < 2**62
        self._radix: NDArray[Any] = np.array([math.prod(sizes[:i]) for i in range(len(sizes))], int if fits else object)
        self._answers: dict[int, Mask] = {}

    def mask(self, codes: Codes) -> Mask:
        """Which values keep it after the decisions of each row, shape (n, values)."""
        earlier = codes[:, self.earlier]
        keys, rows, back = np.unique(earlier @ self._radix, return_index=True, return_inverse=True)
        answers = [self._answer(key, earlier[row]) for key, row in zip(keys.tolist(), rows.tolist(), strict=True)]
        return np.asarray(np.array(answers, np.bool_).reshape(len(keys), len(self._choices))[back])

    def _answer(self, key: int, row: Codes) -> Mask:
        answer = self._answers.get(key)
        if answer is None:
            if len(self._answers) >= _ANSWERS:
                self._answers.clear()
            known = [values[i] for values, i in zip(self._values, row.tolist(), strict=True)]
            before, after = known[: self._own], known[self._own :]
            held = [bool(self._constraint.holds(*before, value, *after)) for value in self._choices]
            answer = self._answers[key] = np.array(held)
        return answer


class SketchDecisions:
    """The decisions that lead to a schedule of one sketch: the sketch itself, then its knobs.

    Attributes:
        steps: In order.
    """

    def __init__(self, first: Decision, sketch: SketchSpace) -> None:
        self.steps = (first, *(Decision.of(f"{sketch.sketch}/{k.name}", k.values) for k in sketch.knobs))
        self._sketch = sketch
        self._limits: dict[int, list[Limit]] = defaultdict(list)
        for constraint in sketch.constraints:
            limit = Limit(constraint, sketch)
            self._limits[limit.depth + 1].append(limit)

    def mask(self, step: int, codes: Codes) -> Mask:
        """What `ScheduleSpace.options` offers at decision `step`.

        Args:
            step: Place of the decision.
            codes: Places of the values decided before, shape (n, at least `step`).

        Returns:
            Shape (n, values).
        """
        mask = np.ones((len(codes), len(self.steps[step].values)), np.bool_)
        for limit in self._limits.get(step, ()):
            mask &= limit.mask(codes)
        return mask

    def before(self, step: int) -> set[int]:
        """The earlier decisions on which the mask of `step`, which is not the sketch's, depends."""
        return {depth + 1 for depth in self._sketch.before[step - 1]}

    def codes(self, schedules: Sequence[Schedule]) -> Codes:
        """Places of the values of complete schedules of this sketch, shape (n, steps)."""
        rows = [[step.code[value] for step, (_, value) in zip(self.steps, s.items, strict=True)] for s in schedules]
        return np.array(rows, np.int64).reshape(len(rows), len(self.steps))

    def schedules(self, codes: Codes) -> list[Schedule]:
        """The inverse of `codes`."""
        names = (SKETCH, *(k.name for k in self._sketch.knobs))
        values = [step.values for step in self.steps]
        return [
            Schedule(tuple((name, v[i]) for name, v, i in zip(names, values, row, strict=True)))
            for row in codes.tolist()
        ]


@dataclass(frozen=True)
class Group:
    """Complete schedules of one sketch, as the policy sees them.

    Attributes:
        sketch: Its name.
        codes: Places of their values, shape (n, steps).
        masks: For each step what could have been chosen, shape (n, values).
        rows: Their places among the schedules given, shape (n,).
    """

    sketch: str
    codes: Codes
    masks: tuple[Mask, ...]
    rows: Codes


class Decisions:
    """All decisions of a space.

    Attributes:
        space: Whose decisions they are.
        first: Which sketch.
    """

    def __init__(self, space: ScheduleSpace) -> None:
        self.space = space
        self.first = Decision.of(SKETCH, [s.sketch for s in space.sketches])
        self.sketches = {s.sketch: SketchDecisions(self.first, s) for s in space.sketches}

    def groups(self, schedules: Sequence[Schedule]) -> list[Group]:
        """Legal complete schedules by sketch."""
        rows: dict[str, list[int]] = defaultdict(list)
        for row, schedule in enumerate(schedules):
            rows[schedule.sketch].append(row)
        found = []
        for name, places in rows.items():
            sketch = self.sketches[name]
            codes = sketch.codes([schedules[i] for i in places])
            masks = tuple(sketch.mask(step, codes) for step in range(len(sketch.steps)))
            found.append(Group(name, codes, masks, np.array(places, np.int64)))
        return found
