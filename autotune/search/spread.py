"""Random schedules that cover a space: the sketch tried least first, and unlike what was tried of it."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection

from search_spaces.space import SKETCH, Schedule, ScheduleSpace

# Draws of which the one most unlike those before is taken, and how many before it is compared with.
_DRAWS, _COMPARED = 4, 128

Fresh = Callable[[Schedule | None], Schedule | None]


class Spread:
    """Draws schedules that have not been seen.

    Args:
        space: The space.
        fresh: Draws a schedule under a prefix that was never seen, None where it finds none.
    """

    def __init__(self, space: ScheduleSpace, fresh: Fresh) -> None:
        self._fresh = fresh
        self._tries = Counter({s.sketch: 0 for s in space.sketches})
        self._latest: dict[str, deque[Schedule]] = defaultdict(lambda: deque(maxlen=_COMPARED))
        self._spent: set[str] = set()

    @property
    def least(self) -> int:
        """Tries of the sketch tried least, of those that have anything left to try."""
        return min((n for sketch, n in self._tries.items() if sketch not in self._spent), default=0)

    def note(self, schedule: Schedule) -> None:
        """Takes in that a schedule is tried."""
        self._tries[schedule.sketch] += 1
        self._latest[schedule.sketch].append(schedule)

    def neglected(self, among: Collection[str], tries: int) -> list[str]:
        """Those of some sketches that were tried less often than this and have anything left to try."""
        return [s for s in among if self._tries[s] < tries and s not in self._spent]

    def draw(self, among: Collection[str] | None = None) -> Schedule | None:
        """A schedule of the sketch tried least, in as many knobs as may be unlike the latest ones of it.

        Args:
            among: Sketches to choose from, None for all.
        """
        for sketch in sorted(self._tries if among is None else among, key=self._tries.__getitem__):
            if sketch in self._spent:
                continue
            prefix = Schedule(((SKETCH, sketch),))
            drawn = self._fresh(prefix)
            if drawn is not None:
                others = (self._fresh(prefix) for _ in range(_DRAWS - 1))
                return max((drawn, *(s for s in others if s is not None)), key=self._distance)
            self._spent.add(sketch)
        return self._fresh(None) if among is None else None

    def _distance(self, schedule: Schedule) -> int:
        """Knobs in which it differs from the most similar of the latest ones."""
        own = schedule.items
        rivals = (s.items for s in self._latest[schedule.sketch])
        return min((sum(a != b for a, b in zip(own, other, strict=True)) for other in rivals), default=len(own))
