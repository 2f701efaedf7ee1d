"""The trials of a task, each where the journal has it: what is asked of all is held as columns, the rest read again."""

from __future__ import annotations

import math
from array import array
from collections.abc import ItemsView, Iterable, Iterator, MutableMapping, ValuesView
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from autotune.measurement import Measurement, Status
from autotune.records import TrialRecord
from autotune.segments import LineReader
from search_spaces.errors import BadLog
from search_spaces.space import Schedule

_STATUSES = tuple(Status)
_CODES = {status: code for code, status in enumerate(_STATUSES)}
_DECODER = msgspec.json.Decoder(TrialRecord)
# The place of a trial that is held here and not in the journal.
_HERE = -1


class TrialIndex(MutableMapping[Schedule, Measurement]):
    """Schedule -> measurement, in the order of first trial; a later one of the same schedule replaces the earlier.

    A trial in the journal costs 65 bytes here, whatever its record holds.

    Args:
        trials: Measurements held here.
        reader: The journal in which the places that `take` is given lie.
    """

    def __init__(self, trials: Iterable[Measurement] = (), reader: LineReader | None = None) -> None:
        self._reader = reader
        self._places = array("q")
        self._hashes = array("q")
        self._statuses = array("b")
        self._seconds, self._build, self._device, self._watts = (array("d") for _ in range(4))
        # The hashes in order, and where each is in the columns.
        self._sorted: NDArray[np.int64] = np.empty(0, np.int64)
        self._order: NDArray[np.int64] = np.empty(0, np.int64)
        # Trials that were put here, by their places in the columns, and those of them that are in no journal.
        self._held: dict[int, Measurement] = {}
        self._recent: dict[Schedule, int] = {}
        for trial in trials:
            self[trial.schedule] = trial

    def take(self, place: int, record: TrialRecord) -> None:
        """Takes in the record at a place of the journal; `settle` must follow before anything is asked."""
        assert not self._held, "the journal comes first"
        self._places.append(place)
        self._hashes.append(hash(tuple(record.schedule.items())))
        self._add_facts(record)

    def settle(self) -> None:
        """Makes ready for questions what was taken in: a schedule recorded again keeps its first place in the order."""
        if len(self._sorted) == len(self._places):
            return
        hashes = np.array(self._hashes)
        superseded = [position for group in equal_groups(hashes) for position in self._replaced(group)]
        if superseded:
            for column in self._columns:
                left = np.delete(np.array(column), superseded)
                del column[:]
                column.frombytes(left.tobytes())
            hashes = np.array(self._hashes)
        self._order = np.argsort(hashes, kind="stable")
        self._sorted = hashes[self._order]

    def _replaced(self, group: list[int]) -> list[int]:
        """Moves what was said last of a schedule to its first position, for positions of one hash; tells the others."""
        first: dict[Schedule, int] = {}
        others = []
        for position in group:
            kept = first.setdefault(self._schedule(position), position)
            if kept != position:
                others.append(position)
                for column in self._columns:
                    column[kept] = column[position]
        return others

    @property
    def _columns(self) -> tuple[array[Any], ...]:
        return (
            self._places,
            self._hashes,
            self._statuses,
            self._seconds,
            self._build,
            self._device,
            self._watts,
        )

    def _add_facts(self, trial: TrialRecord | Measurement) -> None:
        phases, told = trial.phases, trial.conditions
        self._statuses.append(_CODES[trial.status])
        self._seconds.append(trial.seconds)
        self._build.append(phases.build)
        self._device.append(phases.check + phases.measure)
        self._watts.append(math.nan if told is None else told.watts)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Median seconds of each trial, inf unless OK."""
        return np.array(self._seconds)

    @property
    def build_seconds(self) -> NDArray[np.float64]:
        """What building each took."""
        return np.array(self._build)

    @property
    def device_seconds(self) -> NDArray[np.float64]:
        """What checking and timing each took."""
        return np.array(self._device)

    @property
    def watts(self) -> NDArray[np.float64]:
        """Power while each was timed, NaN where the device did not tell."""
        return np.array(self._watts)

    def counts(self) -> dict[Status, int]:
        """Status -> trials, in the order in which the statuses occur first."""
        codes, first, counts = np.unique(np.array(self._statuses), return_index=True, return_counts=True)
        return {_STATUSES[codes[i]]: int(counts[i]) for i in np.argsort(first)}

    def fastest(self, count: int) -> list[Measurement]:
        """So many verified trials at most, the fastest first; of equally fast ones the earlier."""
        return list(map(self.at, self.fastest_places(count)))

    def fastest_places(self, count: int) -> list[int]:
        """Their positions in the order."""
        seconds = self.seconds
        if count < len(seconds):
            seconds[seconds > np.partition(seconds, count - 1)[count - 1]] = np.inf
        order = np.argsort(seconds, kind="stable")[:count]
        return [int(i) for i in order if seconds[i] < np.inf]

    def at(self, position: int) -> Measurement:
        """The trial at a position of the order.

        Raises:
            BadLog: The journal cannot be read any more.
        """
        return self._held[position] if position in self._held else self.record(position).measurement()

    def record(self, position: int) -> TrialRecord:
        """The journal's record of the trial at a position, which is not one that was put here."""
        assert self._reader is not None
        try:
            return _DECODER.decode(self._reader.line(self._places[position]))
        except msgspec.DecodeError as error:
            raise BadLog(f"the journal changed while it was read ({error})", "try again") from error

    def _schedule(self, position: int) -> Schedule:
        if position in self._held:
            return self._held[position].schedule
        return Schedule.from_json(self.record(position).schedule)

    def _candidates(self, schedule: Schedule) -> list[int]:
        """The positions of its hash, nearly always one."""
        if schedule in self._recent:
            return [self._recent[schedule]]
        low, high = (np.searchsorted(self._sorted, hash(schedule), side) for side in ("left", "right"))
        return [int(position) for position in self._order[low:high]]

    def _find(self, schedule: Schedule) -> int | None:
        """The position of a schedule."""
        return next((p for p in self._candidates(schedule) if self._schedule(p) == schedule), None)

    def __getitem__(self, schedule: Schedule) -> Measurement:
        found = next((t for t in map(self.at, self._candidates(schedule)) if t.schedule == schedule), None)
        if found is None:
            raise KeyError(schedule)
        return found

    def __contains__(self, schedule: object) -> bool:
        return isinstance(schedule, Schedule) and self._find(schedule) is not None

    def __setitem__(self, schedule: Schedule, trial: Measurement) -> None:
        position = self._find(schedule)
        if position is None:
            position = self._recent[schedule] = len(self)
            self._places.append(_HERE)
            self._hashes.append(hash(schedule))
            self._add_facts(trial)
        else:
            self._add_facts(trial)
            for column in self._columns[2:]:
                column[position] = column.pop()
        self._held[position] = trial

    def __delitem__(self, schedule: Schedule) -> None:
        raise TypeError("what was tried stays")

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Schedule]:
        return map(self._schedule, range(len(self)))

    def values(self) -> ValuesView[Measurement]:
        """The measurements; each is read when its turn comes."""
        return _Values(self)

    def items(self) -> ItemsView[Schedule, Measurement]:
        """The same with their schedules."""
        return _Items(self)


class _Values(ValuesView[Measurement]):
    _mapping: TrialIndex

    def __iter__(self) -> Iterator[Measurement]:
        return map(self._mapping.at, range(len(self._mapping)))


class _Items(ItemsView[Schedule, Measurement]):
    _mapping: TrialIndex

    def __iter__(self) -> Iterator[tuple[Schedule, Measurement]]:
        return ((trial.schedule, trial) for trial in self._mapping.values())


def equal_groups(hashes: NDArray[np.int64]) -> Iterator[list[int]]:
    """The places of values that occur more than once, value by value, in order."""
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True] * min(1, len(order)), np.diff(hashes[order]) != 0)))
    sizes = np.diff(starts, append=len(order))
    for start, size in zip(starts[sizes > 1], sizes[sizes > 1], strict=True):
        yield order[start : start + size].tolist()
