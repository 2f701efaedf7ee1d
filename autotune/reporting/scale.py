"""Scales of a chart's axes: values to places, and round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

# A logarithmic scale that spans less is ticked like a linear one.
_DECADE = 10.0
_STEPS = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Scale:
    """An axis.

    Attributes:
        low: Value at `start`.
        high: Value at `end`, greater than `low`.
        start: Place of `low` in the picture.
        end: Place of `high`; may lie before `start`, as places count from the top.
        log: Whether equal distances are equal ratios.
    """

    low: float
    high: float
    start: float = 0.0
    end: float = 1.0
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"no scale from {self.low} to {self.high}")

    @staticmethod
    def over(values: Iterable[float], *, log: bool = False, margin: float = 0.05) -> Scale:
        """The scale of some finite values with a margin on both sides; of one value or none, around it."""
        known = list(values)
        low, high = (min(known), max(known)) if known else (1.0, 1.0)
        if log:
            edge = max((high / low) ** margin, 1.02)
            return Scale(low / edge, high * edge, log=True)
        edge = margin * (high - low) or 0.5 * abs(high) or 1.0
        return Scale(low - edge, high + edge)

    def placed(self, start: float, end: float) -> Scale:
        """The same values at other places."""
        return replace(self, start=start, end=end)

    def __call__(self, value: float) -> float:
        """The place of a value; beyond the ends it is that of the nearer end."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values within the scale, about `most` at most."""
        if self.log and self.high / self.low >= _DECADE:
            return self._log_ticks(most)
        width = (self.high - self.low) / most
        unit = 10.0 ** math.floor(math.log10(width))
        step = next(s * unit for s in _STEPS if s * unit >= width * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def _log_ticks(self, most: int) -> list[float]:
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
            found = [f * 10.0**e for e in range(first, last + 1) for f in factors]
            found = [v for v in found if self.low <= v <= self.high]
            if len(found) <= most:
                return found
        return found[:: math.ceil(len(found) / most)]


def apart(places: list[float], gap: float, low: float, high: float) -> list[float]:
    """Places of labels, moved as little as needed to be `gap` apart and within the ends where there is room."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, here in pairwise(order):
        moved[here] = max(moved[here], moved[before] + gap)
    limit = high
    for here in reversed(order):
        moved[here] = max(low, min(moved[here], limit))
        limit = moved[here] - gap
    return moved
