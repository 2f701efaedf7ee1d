"""Experience: what a recording teaches other tasks, its schedules with how much slower than the best each was."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.recordings.recording import Recording
from search_spaces.schedule import SKETCH, Schedule, Value

Floats = NDArray[np.float64]
# Schedules kept of one recording: of more than these, half the fastest, half drawn at random.
MOST = 20_000
# Slowdowns are kept in steps of so many to the doubling.
STEPS = 1024
# Slower than the best by more doublings than this counts as so slow: what matters is the order of the fast ones.
FLOOR = 2.0


@dataclass(frozen=True)
class SketchTable:
    """The schedules of one sketch.

    Attributes:
        sketch: Its name.
        knobs: Their names, in order.
        values: Of each knob those that occur.
        picks: Which value of each knob, shape (schedules, knobs).
        slowdown: Logarithm to base 2 of the time over the task's best, shape (schedules,), `inf` where it failed.
    """

    sketch: str
    knobs: tuple[str, ...]
    values: tuple[tuple[Value, ...], ...]
    picks: NDArray[np.uint16] = field(repr=False)
    slowdown: Floats = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.values) != len(self.knobs) or self.picks.shape != (len(self.slowdown), len(self.knobs)):
            raise ValueError(f"{self.sketch}: knobs, values and schedules do not fit together")
        if len(self.picks) and any(column.max() >= len(v) for column, v in zip(self.picks.T, self.values, strict=True)):
            raise ValueError(f"{self.sketch}: a schedule picks a value that its knob does not have")
        if np.isnan(self.slowdown).any() or (self.slowdown < 0).any():
            raise ValueError(f"{self.sketch}: a slowdown is not a number of at least 0")

    def schedule(self, row: int) -> Schedule:
        """The schedule of a row."""
        chosen = (values[pick] for values, pick in zip(self.values, self.picks[row].tolist(), strict=True))
        return Schedule(((SKETCH, self.sketch), *zip(self.knobs, chosen, strict=True)))

    @cached_property
    def fastest(self) -> NDArray[np.intp]:
        """The rows that did not fail, fastest first."""
        order = np.argsort(self.slowdown, kind="stable")
        return order[: int(np.isfinite(self.slowdown).sum())]


@dataclass(frozen=True)
class Experience:
    """What is known of one task on one device.

    Attributes:
        name: The recording's.
        kernel: What was tuned.
        device: What it was measured on.
        context: The task as numbers, see `cost_models.context`.
        tables: One for each sketch.
        credit: Source, licence, citation, date, as far as the recording told.
    """

    name: str
    kernel: str
    device: str
    context: Mapping[str, float]
    tables: tuple[SketchTable, ...]
    credit: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not any(np.isfinite(table.slowdown).any() for table in self.tables):
            raise ValueError(f"{self.name}: no schedule worked")
        if not all(math.isfinite(number) for number in self.context.values()):
            raise ValueError(f"{self.name}: its context is not finite")

    @property
    def size(self) -> int:
        """Schedules in it."""
        return sum(len(table.slowdown) for table in self.tables)


def experience_of(recording: Recording, rng: np.random.Generator, most: int = MOST) -> Experience:
    """What is kept of a recording.

    Args:
        recording: Failures included.
        rng: Draws which of the slower schedules are kept of a large one.
        most: Schedules to keep.
    """
    slowdown = np.round(np.log2(recording.seconds / recording.optimum) * STEPS) / STEPS
    kept = np.arange(len(slowdown))
    if len(kept) > most:
        order = np.argsort(slowdown, kind="stable")
        half = most // 2
        kept = np.sort(np.concatenate([order[:half], rng.choice(order[half:], most - half, replace=False)]))
    groups: dict[str, list[int]] = {}
    for place in kept.tolist():
        groups.setdefault(recording.space.schedules[place].sketch, []).append(place)
    tables = tuple(_table(name, recording, places, slowdown[places]) for name, places in groups.items())
    return Experience(
        recording.name, recording.kernel, recording.device, dict(recording.context), tables, _credit(recording)
    )


def _table(sketch: str, recording: Recording, places: Sequence[int], slowdown: Floats) -> SketchTable:
    knobs = recording.space.sketch(sketch).knobs
    number = [{value: i for i, value in enumerate(knob.values)} for knob in knobs]
    rows = [recording.space.schedules[place].items[1:] for place in places]
    picks = [[codes[value] for codes, (_, value) in zip(number, row, strict=True)] for row in rows]
    return SketchTable(
        sketch,
        tuple(knob.name for knob in knobs),
        tuple(knob.values for knob in knobs),
        np.array(picks, np.uint16).reshape(len(rows), len(knobs)),
        slowdown,
    )


def _credit(recording: Recording) -> dict[str, str]:
    wanted = ("source", "licence", "license", "citation", "doi", "date", "commit")
    return {k: v for k, v in recording.provenance.items() if k in wanted}
