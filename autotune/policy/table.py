"""Parameters by name: a policy knows what it was taught of, and is neutral about every other name."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
_DECAY, _SQUARE_DECAY, _TINY = 0.9, 0.999, 1e-8
# Spread of the first parameters that lead into the hidden layer; those that lead out of it start at zero.
_SPREAD = 0.5


class Table:
    """A row of parameters for every name, fitted by Adam (Kingma and Ba, 2015), each row at its own pace.

    A row holds what its name adds to the hidden layer (`width` numbers), what it takes out of it (`width`) and a bias.
    Row 0 is that of unknown names and stays zero. Values are kept to single precision: a file of them loses nothing.

    Args:
        width: Of the hidden layer.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.index: dict[str, int] = {"": 0}
        self.values: Floats = np.zeros((1, 2 * width + 1))
        self._mean = self.values.copy()
        self._square = self.values.copy()
        self._steps = np.zeros(1)

    @staticmethod
    def of(names: Iterable[str], values: Floats) -> Table:
        """The table of these names, in order after the unknown one, with these rows."""
        table = Table((values.shape[1] - 1) // 2)
        table.add(names, None)
        table.values[1:] = values
        return table

    def rows(self, names: Iterable[str]) -> Rows:
        """The rows of names, 0 for unknown ones."""
        return np.array([self.index.get(name, 0) for name in names], np.int64)

    def add(self, names: Iterable[str], rng: np.random.Generator | None) -> None:
        """Gives new names their rows: random into the hidden layer, or all zero where there is no `rng`."""
        new = [name for name in dict.fromkeys(names) if name not in self.index]
        if not new:
            return
        self.index.update({name: len(self.values) + i for i, name in enumerate(new)})
        fresh = np.zeros((len(new), self.values.shape[1]))
        if rng is not None:
            fresh[:, : self.width] = rng.normal(0.0, _SPREAD, (len(new), self.width)).astype(np.float32)
        self.values = np.concatenate([self.values, fresh])
        self._mean = np.concatenate([self._mean, np.zeros_like(fresh)])
        self._square = np.concatenate([self._square, np.zeros_like(fresh)])
        self._steps = np.concatenate([self._steps, np.zeros(len(new))])

    def descend(self, gradient: Floats, touched: Rows, rate: float) -> None:
        """One step against `gradient` (of the shape of `values`) in the rows touched, the unknown one excepted.

        Other rows stay as they are: a name that a task lacks is not moved by what was learnt of earlier tasks.
        """
        rows = np.unique(touched[touched > 0])
        slope = gradient[rows]
        self._steps[rows] += 1
        self._mean[rows] += (1 - _DECAY) * (slope - self._mean[rows])
        self._square[rows] += (1 - _SQUARE_DECAY) * (slope**2 - self._square[rows])
        steps = self._steps[rows, None]
        mean = self._mean[rows] / (1 - _DECAY**steps)
        square = self._square[rows] / (1 - _SQUARE_DECAY**steps)
        moved = self.values[rows] - rate * mean / (np.sqrt(square) + _TINY)
        self.values[rows] = moved.astype(np.float32)
