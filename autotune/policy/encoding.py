"""Values of knobs as named numbers, the same names whatever space they occur in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from search_spaces.schedule import Value

# Brings the logarithms of usual knob values (1 to 1,024) to the size of the other numbers.
_SCALE = 5.0


def named_numbers(key: str, value: Value) -> Mapping[str, float]:
    """What is known of a value: which one it is, and its logarithm with its square where it is a positive integer.

    A tuple of factors is described factor by factor, and by the products of its innermost ones. So values that lie
    close together share most of what is learnt of either, and a value never seen before has the share of its size.

    Args:
        key: The sketch and the knob.
        value: One of the knob's values.
    """
    if isinstance(value, tuple):
        numbers: dict[str, float] = {}
        for place, factor in enumerate(value):
            numbers |= named_numbers(f"{key}[{place}]", factor)
            if 0 < place < len(value) - 1 and min(value) > 0:
                numbers |= _size(f"{key}[{place}:]", math.prod(value[place:]))
        return numbers
    is_size = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return {f"{key}={value}": 1.0, **(_size(key, int(value)) if is_size else {})}


def _size(key: str, value: int) -> dict[str, float]:
    log = math.log2(value) / _SCALE
    return {f"{key}~": log, f"{key}~~": log * log}


def encoded(key: str, values: Sequence[Value]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names of the numbers of a knob's values, and the numbers, shape (values, names)."""
    rows = [named_numbers(key, value) for value in values]
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    return names, np.array([[row.get(name, 0.0) for name in names] for row in rows])
