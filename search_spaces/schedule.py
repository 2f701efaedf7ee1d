"""Schedules: points of a space, as plain values that travel, hash and print."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from search_spaces.errors import InvalidSchedule

Value = int | str | bool | tuple[int, ...]
SKETCH = "sketch"


@dataclass(frozen=True)
class Schedule:
    """A point in a space: the sketch's name and a value for each of its knobs; a shorter one is a prefix."""

    items: tuple[tuple[str, Value], ...] = ()

    @cached_property
    def _hash(self) -> int:
        return hash(self.items)

    def __hash__(self) -> int:
        # Sets and dictionaries of schedules ask for it far more often than schedules are made.
        return self._hash

    def __reduce__(self) -> tuple[type[Schedule], tuple[tuple[tuple[str, Value], ...]]]:
        """The decisions alone: the hash of a word is another in every process."""
        return (Schedule, (self.items,))

    def __getitem__(self, name: str) -> Value:
        for key, value in self.items:
            if key == name:
                return value
        raise KeyError(name)

    def __len__(self) -> int:
        return len(self.items)

    def __str__(self) -> str:
        knobs = " ".join(f"{k}={text(v)}" for k, v in self.items[1:])
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


def text(value: Value) -> str:
    """How a value is shown: 8x4x2 for a tuple."""
    return "x".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value(name: str, value: object) -> Value:
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(v, int) for v in value):
        return tuple(value)
    raise InvalidSchedule(f"knob {name} has the value {value!r}, which no knob can have")
