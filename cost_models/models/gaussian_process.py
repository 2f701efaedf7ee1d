"""A Gaussian process over the logarithm of time; what to measure next is where most improvement is expected."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import ndtr
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from cost_models.features import Features
from cost_models.model import CostModel, Floats
from search_spaces.space import Schedule

LEAST = 8
# The cost grows with the cube of the measurements: of more than so many, half are the fastest, half drawn at random.
# The kernel's numbers, fitted in many steps, are had from fewer.
MOST, MOST_FOR_KERNEL = 128, 64
STEPS = 15
# Normal priors on the logarithms of height, length scales (a column spans [0, 1]) and noise, and where each may go:
# without them a fit to a few measurements of a dozen knobs is whatever it likes to be.
HEIGHT, LENGTH, NOISE = (0.0, 1.0, (-4.0, 3.0)), (0.0, 1.0, (-4.0, 4.0)), (-4.0, 1.5, (-9.0, 1.0))
# Improvement is looked for among so many candidates of the best mean.
SHORT_LIST = 96
# Schedules of one ask for which the process is told of those before; further ones follow in the order they have then.
BELIEVED = 16


class GaussianProcess(CostModel):
    """scikit-learn's process with a Matern kernel and a length scale for each column.

    A failure is taken for as slow as the slowest that was measured.
    """

    def __init__(self, features: Features, seed: int) -> None:
        super().__init__(features, seed)
        self._process: GaussianProcessRegressor | None = None
        self._rows, self._logs = np.zeros((0, 0)), np.zeros(0)

    @property
    def ready(self) -> bool:
        """Whether it was fitted to a few measurements, not all of them failures."""
        return self._process is not None

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """Fits the kernel's numbers by their likelihood under the priors, then the process."""
        if len(schedules) < LEAST or not np.isfinite(seconds).any():
            return
        rng = np.random.default_rng(self.seed)
        kept = _kept(seconds, MOST, rng)
        logs = np.log(np.minimum(seconds[kept], seconds[np.isfinite(seconds)].max()))
        spread = float(logs.std())
        self._rows = self.features.unit([schedules[i] for i in kept])
        self._logs = (logs - logs.mean()) / (spread if spread > 0 else 1.0)
        few = _kept(self._logs, MOST_FOR_KERNEL, rng)
        kernel = ConstantKernel(1.0) * Matern(np.ones(self._rows.shape[1]), nu=2.5) + WhiteKernel(np.exp(NOISE[0]))
        found = GaussianProcessRegressor(kernel, optimizer=_climb).fit(self._rows[few], self._logs[few])
        self._process = _fitted(found.kernel_, self._rows, self._logs)

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """The expected logarithm of time, standardised. Zeros before it is ready."""
        if self._process is None or not schedules:
            return np.zeros(len(schedules))
        return np.asarray(self._process.predict(self.features.unit(schedules)), np.float64)

    def choose(
        self, schedules: Sequence[Schedule], count: int, pending: Sequence[Schedule] = (), head: str = ""
    ) -> list[int]:
        """One after the other by expected improvement; of each, and of what is pending, the mean is taken for measured.

        Known as the kriging believer (Ginsbourger et al., 2010).
        """
        if self._process is None or not schedules:
            return super().choose(schedules, count)
        short = super().choose(schedules, max(SHORT_LIST, 2 * count))
        candidates = self.features.unit([schedules[i] for i in short])
        rows, logs, process = self._rows, self._logs, self._process
        if pending:
            process, rows, logs = _believing(process, rows, logs, self.features.unit(pending))
        chosen: list[int] = []
        while len(chosen) < min(count, len(short)):
            gain = _improvement(process, candidates, float(self._logs.min()))
            gain[chosen] = -1.0
            if len(chosen) == BELIEVED:
                chosen += np.argsort(-gain, kind="stable")[: min(count, len(short)) - BELIEVED].tolist()
                break
            chosen.append(int(np.argmax(gain)))
            process, rows, logs = _believing(process, rows, logs, candidates[chosen[-1:]])
        return [short[i] for i in chosen]


def _kept(seconds: Floats, most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Which of the measurements are fitted to."""
    order = np.argsort(seconds, kind="stable")
    half = most // 2
    if len(order) <= most:
        return order
    return np.concatenate([order[:half], rng.choice(order[half:], most - half, replace=False)])


def _fitted(kernel: object, rows: Floats, logs: Floats) -> GaussianProcessRegressor:
    """The process of a kernel whose numbers stay as they are."""
    return GaussianProcessRegressor(kernel, optimizer=None).fit(rows, logs)


def _believing(
    process: GaussianProcessRegressor, rows: Floats, logs: Floats, pending: Floats
) -> tuple[GaussianProcessRegressor, Floats, Floats]:
    """The process, its rows and targets, had the pending rows been measured to be as expected."""
    rows, logs = np.concatenate([rows, pending]), np.concatenate([logs, process.predict(pending)])
    return _fitted(process.kernel_, rows, logs), rows, logs


def _improvement(process: GaussianProcessRegressor, rows: Floats, best: float) -> Floats:
    """Expected improvement on `best` (Jones et al., 1998), noise counting as what the process cannot follow."""
    mean, deviation = process.predict(rows, return_std=True)
    deviation = np.maximum(deviation, 1e-6)
    z = (best - mean) / deviation
    return np.asarray(deviation * (z * ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)), np.float64)


def _climb(objective: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: Floats) -> tuple[Floats, float]:
    """A few steps towards the likeliest kernel under the priors: more would change no ranking."""
    priors = [HEIGHT, *[LENGTH] * (len(start) - 2), NOISE]
    means, deviations = (np.array([p[i] for p in priors]) for i in (0, 1))
    limits = np.clip([p[2] for p in priors], bounds[:, :1], bounds[:, 1:])

    def loss(logs: Floats) -> tuple[float, Floats]:
        unlikelihood, slope = objective(logs)
        away = (logs - means) / deviations
        return unlikelihood + 0.5 * float(away @ away), slope + away / deviations

    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": STEPS})
    return found.x, float(found.fun)


MODEL = GaussianProcess
