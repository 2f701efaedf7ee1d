"""Columns of a table that is filled some rows at a time, some bytes a value, whatever the values are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from search_spaces.schedule import Value, text

Places = NDArray[np.intp]
_MISSING = -1


class Column(ABC):
    """One column.

    Attributes:
        cells: What is held of each row.
    """

    cells: array[Any]

    @abstractmethod
    def extend(self, values: Sequence[Any]) -> None:
        """Some rows more; None where nothing is known."""

    @abstractmethod
    def series(self, places: Places) -> pd.Series[Any]:
        """The rows at some places, of the column's type."""

    def fill(self, rows: int) -> None:
        """Rows of which nothing is known, until there are so many."""
        self.extend([None] * (rows - len(self.cells)))


class Numbers(Column):
    """Numbers, whole ones exact up to 2**53.

    Args:
        whole: Whether the column is of whole numbers.
    """

    def __init__(self, whole: bool = False) -> None:
        self.cells = array("d")
        self._whole = whole

    def extend(self, values: Sequence[float | None]) -> None:
        """Some rows more."""
        try:
            self.cells += array("d", values)
        except TypeError:
            self.cells.extend([np.nan if value is None else value for value in values])

    def series(self, places: Places) -> pd.Series[Any]:
        """`float64`, or `Int64` of whole numbers."""
        values = np.frombuffer(self.cells, np.float64)[places]
        if not self._whole:
            return pd.Series(values, dtype="float64")
        unknown = np.isnan(values)
        return pd.Series(pd.arrays.IntegerArray(np.where(unknown, 0, values).astype(np.int64), unknown))


class Flags(Column):
    """True, false, or not known."""

    def __init__(self) -> None:
        self.cells = array("b")

    def extend(self, values: Sequence[bool | None]) -> None:
        """Some rows more."""
        self.cells.extend([_MISSING if value is None else value for value in values])

    def series(self, places: Places) -> pd.Series[Any]:
        """`boolean`."""
        values = np.frombuffer(self.cells, np.int8)[places]
        return pd.Series(pd.arrays.BooleanArray(values == 1, values == _MISSING))


class Words(Column):
    """Words, of which each is held once.

    Args:
        categories: Every word that may come, in order; None for those that come, sorted.
        free: Whether the column is free text.
    """

    def __init__(self, categories: Sequence[str] | None = None, free: bool = False) -> None:
        self.cells = array("i")
        self._codes: dict[str | None, int] = {None: _MISSING}
        self._codes |= {word: code for code, word in enumerate(categories or ())}
        self._sorted = categories is None
        self._free = free

    def extend(self, values: Sequence[str | None]) -> None:
        """Some rows more."""
        codes = self._codes
        self.cells.extend([codes[v] if v in codes else codes.setdefault(v, len(codes) - 1) for v in values])

    def series(self, places: Places) -> pd.Series[Any]:
        """`category`, or `string` of free text."""
        codes = np.frombuffer(self.cells, np.int32)[places]
        words = [word for word in self._codes if word is not None]
        if self._free:
            return pd.Series(np.array([*words, None], dtype=object)[codes], dtype="string")
        if not self._sorted:
            return pd.Series(pd.Categorical.from_codes(codes, pd.Index(words, dtype="str")))
        return categorical(codes, words)


class Knobs(Column):
    """Values of a knob: whole numbers and flags as such, words and tuples as they are shown."""

    def __init__(self) -> None:
        self.cells = array("i")
        # One and true are equal, and are not the same value of a knob.
        self._codes: dict[tuple[type, Value | None], int] = {(type(None), None): _MISSING}

    def extend(self, values: Sequence[Value | None]) -> None:
        """Some rows more."""
        codes = self._codes
        keys = [(value.__class__, value) for value in values]
        self.cells.extend([codes[k] if k in codes else codes.setdefault(k, len(codes) - 1) for k in keys])

    def series(self, places: Places) -> pd.Series[Any]:
        """`boolean`, `Int64` or `category`."""
        codes = np.frombuffer(self.cells, np.int32)[places]
        values = [value for _, value in self._codes if value is not None]
        kinds = {type(value) for value in values}
        if kinds <= {bool}:
            return pd.Series(pd.arrays.BooleanArray(np.array([*values, False], np.bool_)[codes], codes == _MISSING))
        if kinds <= {int}:
            return pd.Series(pd.arrays.IntegerArray(np.array([*values, 0], np.int64)[codes], codes == _MISSING))
        return categorical(codes, list(map(text, values)))


def categorical(codes: NDArray[np.int32], words: Sequence[str]) -> pd.Series[Any]:
    """Words as categories, those that occur, in order."""
    used = sorted({words[code] for code in np.unique(codes) if code != _MISSING})
    place = {word: i for i, word in enumerate(used)}
    recoded = np.array([*(place.get(word, _MISSING) for word in words), _MISSING], dtype=np.int32)
    return pd.Series(pd.Categorical.from_codes(recoded[codes], pd.Index(used, dtype="str")))
