"""A Gaussian process with a length scale a column, and expected improvement that knows what is being measured.

Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), chapters 2 and 5; priors on the kernel's
numbers keep a fit to eight measurements sane, as in Hellsten et al., "BaCO" (ASPLOS 2023).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtr

Floats = NDArray[np.float64]
# Normal priors on the logarithms of a length scale, of the height and of the noise, and where each may go. A column
# spans [0, 1].
_LENGTH = (0.0, 1.0, (-4.0, 4.0))
_HEIGHT = (0.0, 1.0, (-4.0, 3.0))
_NOISE = (-4.0, 1.5, (-9.0, 1.0))
_JITTER = 1e-6
_LEAST_VARIANCE = 1e-9


@dataclass(frozen=True)
class Kernel:
    """Matern 5/2 over scaled columns.

    Attributes:
        lengths: Length scale of each column.
        height: Variance of the function.
        noise: Variance of a measurement around it, and of what the function cannot follow.
    """

    lengths: Floats
    height: float
    noise: float

    def __call__(self, one: Floats, other: Floats) -> Floats:
        """Covariances of the function at the rows of `one` and `other`, shape (len(one), len(other))."""
        a, b = (rows / self.lengths for rows in (one, other))
        squares = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2.0 * (a @ b.T)
        root = np.sqrt(5.0 * np.maximum(squares, 0.0))
        return np.asarray(self.height * (1.0 + root + root * root / 3.0) * np.exp(-root), np.float64)


def fitted_kernel(rows: Floats, targets: Floats, steps: int) -> Kernel:
    """The likeliest kernel under the priors, or what is found on the way to it.

    Args:
        rows: Shape (n, columns), each column within about [0, 1].
        targets: Shape (n,), standardised.
        steps: Most steps of L-BFGS-B from the means of the priors.
    """
    priors = [_LENGTH] * rows.shape[1] + [_HEIGHT, _NOISE]
    means, deviations = (np.array([p[i] for p in priors]) for i in (0, 1))
    squares = (rows.T[:, :, None] - rows.T[:, None, :]) ** 2

    def loss(logs: Floats) -> tuple[float, Floats]:
        likelihood, slope = _unlikelihood(logs, squares, targets)
        away = (logs - means) / deviations
        return likelihood + 0.5 * float(away @ away), slope + away / deviations

    limits = [p[2] for p in priors]
    found = minimize(loss, means, jac=True, method="L-BFGS-B", bounds=limits, options={"maxiter": steps}).x
    return Kernel(np.exp(found[:-2]), float(np.exp(found[-2])), float(np.exp(found[-1])) + _JITTER)


def _unlikelihood(logs: Floats, squares: Floats, targets: Floats) -> tuple[float, Floats]:
    """Negative log marginal likelihood but for a constant, and its gradient.

    Args:
        logs: Of the length scales, the height and the noise.
        squares: Squared differences of each column, shape (columns, n, n).
        targets: Shape (n,).
    """
    weights, height, noise = np.exp(-2.0 * logs[:-2]), np.exp(logs[-2]), np.exp(logs[-1])
    root = np.sqrt(5.0 * np.tensordot(weights, squares, 1))
    decay = np.exp(-root)
    smooth = height * (1.0 + root + root * root / 3.0) * decay
    count = len(targets)
    lower = np.linalg.cholesky(smooth + (noise + _JITTER) * np.eye(count))
    inverse = solve_triangular(lower, np.eye(count), lower=True)
    precision = inverse.T @ inverse
    solved = precision @ targets
    value = 0.5 * float(targets @ solved) + float(np.log(np.diag(lower)).sum())
    outer = 0.5 * (precision - np.outer(solved, solved))
    by_square = outer * (-5.0 / 6.0 * height * (1.0 + root) * decay)
    slope = np.empty_like(logs)
    slope[:-2] = np.tensordot(squares, by_square, ([1, 2], [0, 1])) * -2.0 * weights
    slope[-2] = (outer * smooth).sum()
    slope[-1] = np.trace(outer) * noise
    return value, slope


class Posterior:
    """What a kernel and measurements say of other rows.

    Args:
        kernel: Of the process.
        rows: Of the measurements, shape (n, columns).
        targets: Their values, shape (n,), standardised.
    """

    def __init__(self, kernel: Kernel, rows: Floats, targets: Floats) -> None:
        self.kernel = kernel
        self._rows = rows
        covariance = kernel(rows, rows) + kernel.noise * np.eye(len(rows))
        lower = np.linalg.cholesky(covariance)
        self._whiten = solve_triangular(lower, np.eye(len(rows)), lower=True).T
        self._solved = self._whiten @ (self._whiten.T @ targets)
        self.best = float(targets.min())

    def mean(self, rows: Floats) -> Floats:
        """Expected values, shape (len(rows),)."""
        return np.asarray(self.kernel(rows, self._rows) @ self._solved, np.float64)

    def short_list(self, rows: Floats, most: int) -> tuple[NDArray[np.intp], Candidates]:
        """Places of at most `most` rows of the best mean, in order, and those rows as candidates."""
        across = self.kernel(rows, self._rows)
        mean = across @ self._solved
        listed = np.sort(np.argsort(mean, kind="stable")[:most])
        whitened = across[listed] @ self._whiten
        return listed, Candidates(self.kernel, rows[listed], mean[listed], whitened, self.best)

    def whitened(self, rows: Floats) -> Floats:
        """Shape (len(rows), n): their inner products are the covariances that the measurements explain."""
        return np.asarray(self.kernel(rows, self._rows) @ self._whiten, np.float64)


class Candidates:
    """Rows of which some are to be measured; what is measured at the time leaves less to learn around it.

    The mean of a row being measured is taken for its result, so only variances change (the kriging believer of
    Ginsbourger et al., 2010).
    """

    def __init__(self, kernel: Kernel, rows: Floats, mean: Floats, whitened: Floats, best: float) -> None:
        self._kernel = kernel
        self._rows = rows
        self._mean = mean
        self._best = best
        self._explained = whitened
        self._variance = np.maximum(kernel.height - (whitened**2).sum(axis=1), _LEAST_VARIANCE)
        self._believed: list[tuple[Floats, Floats]] = []

    def believe(self, row: Floats, whitened: Floats) -> None:
        """Takes a row for measured.

        Args:
            row: Shape (columns,).
            whitened: As `Posterior.whitened` gives it for this row, shape (n,).
        """
        for other, scaled in self._believed:
            step = (self._kernel(row[None], other[None])[0, 0] - whitened @ scaled[:-1]) / scaled[-1]
            whitened = np.append(whitened, step)
        left = max(self._kernel.height - float(whitened @ whitened), _LEAST_VARIANCE)
        deviation = np.sqrt(left + self._kernel.noise)
        shared = self._kernel(self._rows, row[None])[:, 0] - self._explained @ whitened
        self._believed.append((row, np.append(whitened, deviation)))
        self._explained = np.column_stack([self._explained, shared / deviation])
        self._variance = np.maximum(self._variance - (shared / deviation) ** 2, _LEAST_VARIANCE)

    def improvement(self) -> Floats:
        """Expected improvement over the best measured (Jones et al., 1998), shape (rows,)."""
        deviation = np.sqrt(self._variance)
        z = (self._best - self._mean) / deviation
        return np.asarray(deviation * (z * ndtr(z) + np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)), np.float64)
