"""What a strategy remembers: what was asked or told, and the fastest at hand however much that is."""

from __future__ import annotations

import heapq
import math
from bisect import insort
from itertools import islice

from search_spaces.space import Schedule

# Of each sketch so many are kept in order; more than that are sorted when they are asked for.
_KEPT = 64
_Entry = tuple[float, int, Schedule]


class Memory:
    """Schedules asked and told; strategies that work together share one.

    Attributes:
        seen: Every legal schedule asked or told.
        told: Legal schedules with their latest seconds, `inf` where they failed, in the order first told.
    """

    def __init__(self) -> None:
        self.seen: set[Schedule] = set()
        self.told: dict[Schedule, float] = {}
        # By sketch, fastest first; equal times in the order first told. None where it must be built anew.
        self._fastest: dict[str, list[_Entry] | None] = {}

    def tell(self, schedule: Schedule, seconds: float) -> None:
        """Remembers the latest time of a legal schedule."""
        self.seen.add(schedule)
        before, place = self.told.get(schedule), len(self.told)
        self.told[schedule] = seconds
        sketch = schedule.sketch
        kept = self._fastest.setdefault(sketch, [])
        if before is not None:
            # Who comes up to the place of one that got slower is not known; two that share a memory tell it twice.
            if before != seconds:
                self._fastest[sketch] = None
        elif kept is not None and math.isfinite(seconds):
            insort(kept, (seconds, place, schedule))
            del kept[_KEPT:]

    def best(self, count: int) -> list[Schedule]:
        """The fastest schedules told, at most `count`, fastest first; none that failed."""
        if count <= _KEPT:
            return [s for _, _, s in islice(heapq.merge(*map(self._of, self._fastest)), count)]
        return [s for _, _, s in heapq.nsmallest(count, self._fine())]

    def leaders(self) -> list[Schedule]:
        """The fastest of each sketch, fastest first; none of a sketch of which nothing was verified."""
        return [s for _, _, s in sorted(kept[0] for kept in map(self._of, self._fastest) if kept)]

    def _of(self, sketch: str) -> list[_Entry]:
        kept = self._fastest[sketch]
        if kept is None:
            kept = heapq.nsmallest(_KEPT, (e for e in self._fine() if e[2].sketch == sketch))
            self._fastest[sketch] = kept
        return kept

    def _fine(self) -> list[_Entry]:
        return [(t, place, s) for place, (s, t) in enumerate(self.told.items()) if math.isfinite(t)]
