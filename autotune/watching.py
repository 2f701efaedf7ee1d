"""A running journal as it grows: what it has found, how fast it goes, and when it will be done."""

from __future__ import annotations

import fcntl
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy import optimize

from autotune.journal import LOCK, journal_path, read_on
from autotune.measurement import Status
from autotune.records import GivenUpRecord, RaceRecord, RunRecord, TrialRecord
from autotune.segments import LineReader
from autotune.trial_index import TrialIndex

# Trials by which the pace is modelled: stretches of them, stretches at least, and those that are taken for what comes.
_STRETCH, _LEAST_STRETCHES, _RECENT = 8, 4, 64
# Trials that are kept for it.
_KEPT = 4096


@dataclass
class Watched:
    """What a journal has said so far of its latest run.

    Attributes:
        path: The journal or its folder.
        run: The latest run, None before it was written.
        trials: Its latest trials in order, those of the runs that it continues left out.
        taken: How many it had in all.
        done: Schedules tried in all runs of its task.
        statuses: How often each status was the last word.
        best: The fastest trial of the task that ran, None before one did.
        race: The final race of the latest run, None before it ended.
        given_up: Why that race did not end, "" for nothing.
    """

    path: Path
    run: RunRecord | None = None
    trials: deque[TrialRecord] = field(default_factory=lambda: deque(maxlen=_KEPT))
    taken: int = 0
    best: TrialRecord | None = None
    race: RaceRecord | None = None
    given_up: str = ""
    _tried: dict[str, TrialIndex] = field(default_factory=dict)
    _task_of: dict[str, str] = field(default_factory=dict)
    _place: int = 0

    def read(self) -> int:
        """Takes in what was added since, and tells how many records that was.

        Raises:
            BadLog: Not a journal, damaged, or of a newer schema.
        """
        count = 0
        for end, record in read_on(self.path, self._place):
            if isinstance(record, RunRecord):
                self._begin(record)
            elif isinstance(record, TrialRecord):
                self._tried[self._task_of[record.run]].take(self._place, record)
                self.trials.append(record)
                self.taken += 1
            elif isinstance(record, RaceRecord):
                self.race = record
            elif isinstance(record, GivenUpRecord):
                self.given_up = record.why
            self._place = end
            count += 1
        if count:
            self._known.settle()
            self.best = next(map(self._known.record, self._known.fastest_places(1)), None)
        return count

    def _begin(self, run: RunRecord) -> None:
        self.run, self.taken, self.race, self.given_up = run, 0, None, ""
        self.trials.clear()
        self._task_of[run.run] = run.task.key
        if run.task.key not in self._tried:
            self._tried[run.task.key] = TrialIndex(reader=LineReader(journal_path(self.path)))

    @property
    def _known(self) -> TrialIndex:
        return TrialIndex() if self.run is None else self._tried[self.run.task.key]

    @property
    def done(self) -> int:
        """Schedules tried in all runs of the task."""
        return len(self._known)

    @property
    def statuses(self) -> dict[str, int]:
        """Status -> trials, those that ran first."""
        counts = {str(status): count for status, count in self._known.counts().items()}
        return dict(sorted(counts.items(), key=lambda item: (item[0] != Status.OK, -item[1])))

    @property
    def left(self) -> int:
        """Trials that are still to come."""
        return 0 if self.run is None else max(0, self.run.trials - self.done)

    @property
    def ended(self) -> bool:
        """Whether the run says that it is over; one that was stopped says nothing."""
        return self.race is not None or bool(self.given_up)

    def remaining(self, since: float) -> float:
        """Seconds until the search ends; inf while too little is known.

        Args:
            since: Seconds since the last trial.
        """
        if self.run is None or not self.trials:
            return math.inf
        seconds = expected_seconds(self.trials, self.left)
        if self.run.minutes is not None:
            seconds = min(seconds, 60.0 * self.run.minutes - self.trials[-1].at)
        return max(0.0, seconds - since)


def expected_seconds(trials: Sequence[TrialRecord], left: int) -> float:
    """How long `left` further trials take, from what building and running cost so far.

    The time of each stretch of trials is modelled as a share of their seconds in builders (which work at once), a share
    of their seconds on the device, and something for every trial; the shares are fitted without negative ones. What is
    to come is taken to build and run as the latest trials did. Before there are stretches enough it is the pace so far.

    Args:
        trials: Of one run, in order.
        left: How many are to come.
    """
    if left == 0:
        return 0.0
    if not trials:
        return math.inf
    at = np.array([t.at for t in trials])
    costs = np.array([(t.phases.build, t.phases.check + t.phases.measure, 1.0) for t in trials])
    ends = np.arange(_STRETCH, len(trials), _STRETCH)
    if len(ends) < _LEAST_STRETCHES:
        return left * float(at[-1]) / len(trials)
    sums = np.array([costs[end - _STRETCH + 1 : end + 1].sum(axis=0) for end in ends])
    shares, _ = optimize.nnls(sums, at[ends] - at[ends - _STRETCH])
    return left * float(shares @ costs[-_RECENT:].mean(axis=0))


def is_written(path: Path) -> bool:
    """Whether a run writes to a journal now.

    It is asked for with a lock that is given back at once, so that nothing is kept from a run.

    Args:
        path: The journal or its folder.
    """
    try:
        with (journal_path(path).parent / LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
