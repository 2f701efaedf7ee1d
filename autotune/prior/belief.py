"""What is believed of a task from other tasks and its own first measurements: a Gaussian process.

Its mean is a mixture of what the other tasks say, each weighted by how well it foretold the measurements so far (as
ensembles weighted by rank do, Feurer et al., 2018). Its covariance says that schedules are alike which have like knobs,
and those which the other tasks found alike: one measurement tells of all schedules over which those tasks disagree in
the same way.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from autotune.prior.experience import FLOOR, Floats

# Variances, in squared doublings of the time, of: what single tasks say; what they have in common; the knobs.
LINEAR, TASKS, KNOBS = 0.3, 0.5, 0.5
# Inverse squared lengths.
TASKS_SCALE, KNOBS_SCALE = 2.0, 4.0
NOISE = 0.01
# The error that a task is believed to have counts like so many measurements.
CAUTION = 4.0
# The weight of a task falls with a power of its error: this one, and more with every measurement.
TRUST, GROWTH = 2.0, 0.1
_ROOM = 64
# The error of the best task for which the variances are as above.
_WIDE = 0.25


class Belief:
    """The process over a growing list of points.

    What tasks say of a point, and what is measured of it, is its speed in doublings over the fastest: never positive.

    Args:
        errors: Mean squared error that each task is believed to have before anything is measured, shape (tasks,).
        columns: Numbers that say where the knobs of a point stand.
    """

    def __init__(self, errors: Floats, columns: int) -> None:
        self._errors = errors
        # By what the variances are multiplied: little where some task is believed to be nearly right.
        self._scale = self._expected = min(1.0, float(errors.min(initial=_WIDE)) / _WIDE)
        self._tasks = np.empty((len(errors), 0))
        self._knobs = np.empty((0, columns))
        self._variance = np.empty(0)
        # Points that were measured, the Cholesky factor of their covariance, and its inverse times theirs with all.
        self._at: list[int] = []
        self._factor = np.empty((_ROOM, _ROOM))
        self._solved = np.empty((_ROOM, 0))

    @property
    def size(self) -> int:
        """Points there are."""
        return len(self._variance)

    @property
    def points(self) -> list[int]:
        """Those that the process is conditioned on, in that order."""
        return self._at

    @property
    def measured(self) -> int:
        """How many of them the process is conditioned on."""
        return len(self._at)

    def add(self, tasks: Floats, knobs: Floats) -> None:
        """Takes in further points.

        Args:
            tasks: What each task says of them, from -FLOOR to 0, shape (tasks, points).
            knobs: Where their knobs stand, shape (points, columns).
        """
        first, count = self.size, len(self._at)
        self._tasks = np.concatenate([self._tasks, tasks], axis=1)
        self._knobs = np.concatenate([self._knobs, knobs])
        new = np.arange(first, first + len(knobs))
        solved = np.zeros((len(self._solved), len(new)))
        own = LINEAR * ((tasks + FLOOR) ** 2).mean(axis=0) + TASKS + KNOBS
        if count:
            rows = np.array([self._covariance(point, new) for point in self._at])
            solved[:count] = solve_triangular(self._factor[:count, :count], rows, lower=True)
            own = own - (solved[:count] ** 2).sum(axis=0)
        self._solved = np.concatenate([self._solved, solved], axis=1)
        self._variance = np.concatenate([self._variance, own])

    def condition(self, point: int) -> None:
        """Has the process know that a point is measured; with what result is said later."""
        count = len(self._at)
        if count == len(self._factor):
            self._grow()
        row = self._solved[:count, point]
        height = math.sqrt(max(float(self._variance[point]) + NOISE, 1e-6))
        self._factor[count, :count], self._factor[count, count] = row, height
        self._factor[:count, count] = 0.0
        self._solved[count] = (self._covariance(point, slice(None)) - row @ self._solved[:count]) / height
        self._variance = self._variance - self._solved[count] ** 2
        self._at.append(point)

    def forget(self, count: int) -> None:
        """Takes back the last conditions."""
        for _ in range(count):
            self._at.pop()
            self._variance = self._variance + self._solved[len(self._at)] ** 2

    def mean(self, values: Floats) -> Floats:
        """The believed values of all points, shape (points,).

        Args:
            values: Those of the points measured, in the order of `condition`. NaN where one is under way: it then
                counts as found as fast as believed, but no faster than the best, so that its like are not asked too.
        """
        known = np.flatnonzero(~np.isnan(values))
        share, offset = self.weights(known, values[known])
        base = share @ (self._tasks + offset[:, None])
        ceiling = values[known].max(initial=-np.inf) if len(known) else np.inf
        solved = np.zeros(len(values))
        for place, value in enumerate(values.tolist()):
            row = self._factor[place]
            believed = base[self._at[place]] + row[:place] @ solved[:place]
            found = min(believed, ceiling) if math.isnan(value) else value
            solved[place] = (found - believed) / row[place]
        # The measurements tell how far all variances are off: those under way, taken for as believed, do not.
        surprise = float((solved[known] ** 2).sum())
        self._scale = (surprise + CAUTION * self._expected) / (len(known) + CAUTION)
        return np.asarray(base + solved @ self._solved[: len(values)])

    def improvement(self, mean: Floats, best: float) -> Floats:
        """Expected improvement on the value `best` of every point, shape (points,); after `mean`."""
        deviation = np.sqrt(self._scale * np.maximum(self._variance, 1e-6))
        z = (mean - best) / deviation
        return np.asarray(deviation * (z * ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)))

    def weights(self, known: NDArray[np.intp], values: Floats) -> tuple[Floats, Floats]:
        """The share of each task and by how much it says too little, shape (tasks,) both.

        Args:
            known: Numbers of measurements in the order of `condition`.
            values: What they gave.
        """
        said = self._tasks[:, [self._at[i] for i in known]]
        count = len(values)
        offset = np.median(values - said, axis=1) * count / (count + 1) if count else np.zeros(len(said))
        squares = ((values - said - offset[:, None]) ** 2).sum(axis=1)
        share = ((squares + CAUTION * self._errors) / (count + CAUTION)) ** -(TRUST + GROWTH * count)
        return share / share.sum(), offset

    def _covariance(self, point: int, others: NDArray[np.intp] | slice) -> Floats:
        mine, theirs = self._tasks[:, point : point + 1], self._tasks[:, others]
        apart = ((theirs - mine) ** 2).mean(axis=0)
        away = ((self._knobs[others] - self._knobs[point]) ** 2).sum(axis=1)
        return np.asarray(
            LINEAR * ((mine + FLOOR) * (theirs + FLOOR)).mean(axis=0)
            + TASKS * np.exp(-TASKS_SCALE * apart)
            + KNOBS * np.exp(-KNOBS_SCALE * away)
        )

    def _grow(self) -> None:
        count = len(self._factor)
        self._factor = np.pad(self._factor, ((0, count), (0, count)))
        self._solved = np.pad(self._solved, ((0, count), (0, 0)))
