"""Values that candidates are checked with: normal ones for all, and other distributions for finalists."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search_spaces.operator import Content, Operator, TensorSpec, Workload

# Sums of products stay below this: an eighth of float16's largest value, room for the tail of a distribution.
_MOST = 2.0**13
_PERIODS = (13, 17, 19, 23)
# Integers get so much room between them that few are zero, and so little that their sums fit a narrow float.
_INTEGER_SPREAD = 4.0
# Digits of a value that decide its code.
_CODE_STEPS = 4096.0
# Whose fractions say what a choice is: so many for a difference of one.
_CHOICE_STEPS = 61.0


@dataclass(frozen=True)
class Draw:
    """What a distribution makes values from.

    Attributes:
        xp: The array namespace of `values`.
        values: Standard normal values in float32.
        index: Number of the input.
        length: Terms summed into one output element.
    """

    xp: Any
    values: Any
    index: int
    length: int

    @property
    def position(self) -> Any:
        """Number of each element, row-major."""
        count = math.prod(self.values.shape)
        return self.xp.reshape(self.xp.arange(count, device=self.values.device), self.values.shape)


Distribution = Callable[[Draw], Any]


def stored(xp: Any, values: Any, dtype: str, scale: float = 1.0) -> Any:
    """`values` as an array of `dtype` shall hold them: times `scale`, or whole numbers that do not wrap.

    Integers are not scaled, as few would remain; an operator that takes them has scales of its own.
    """
    if dtype == "int8":
        return xp.clip(xp.round(values * _INTEGER_SPREAD), -127.0, 127.0)
    return values * scale


def filled(xp: Any, values: Any, spec: TensorSpec, scale: float = 1.0) -> Any:
    """`values` as the input `spec` shall hold them: what is no plain number is made of their order or digits.

    Args:
        xp: The array namespace of `values`.
        values: Of any distribution, in the shape of `spec`.
        spec: The input.
        scale: Of plain numbers that are not whole.
    """
    if spec.content is Content.CODES:
        return xp.remainder(xp.floor(values * _CODE_STEPS), 256.0) - 128.0
    if spec.content is Content.PAGES:
        order = xp.argsort(xp.reshape(values, (-1,)))
        return xp.reshape(order * (spec.bound // math.prod(spec.shape)), spec.shape)
    if spec.content is Content.OFFSETS:
        return _ends(xp, values, spec.bound)
    if spec.content is Content.CHOICES:
        return _choices(xp, values, spec.bound)
    return stored(xp, values, spec.dtype, scale)


def _ends(xp: Any, values: Any, bound: int) -> Any:
    """Ends of groups, the sizes in proportion to how far the values are above -1: uneven, and about one in six empty.

    The last group takes what rounding leaves, or all where no value is above -1.
    """
    sizes = xp.astype(xp.where(values > -1.0, values + 1.0, xp.zeros_like(values)), xp.float64)
    total = float(xp.sum(sizes)) or 1.0
    ends = xp.floor(xp.cumulative_sum(sizes) * (bound / total))
    ends = xp.where(ends > bound, xp.zeros_like(ends) + bound, ends)
    ends[-1] = bound
    return ends


def _choices(xp: Any, values: Any, bound: int) -> Any:
    """Indices by the values' digits, each of a row out of a stretch of its own; equal rows make equal choices.

    The stretches start where the first value of the row says, so that any index may come first.
    """
    count = values.shape[-1]
    stretch = bound // count
    digits = xp.remainder(xp.astype(values, xp.float64) * _CHOICE_STEPS, 1.0)
    inside = xp.floor(digits * stretch)
    inside = xp.where(inside >= stretch, xp.zeros_like(inside), inside)
    start = xp.floor(digits[..., :1] * bound)
    return xp.remainder(start + inside + xp.arange(count, device=values.device) * stretch, bound)


def normal(draw: Draw) -> Any:
    """Standard normal values."""
    return draw.values


def large(draw: Draw) -> Any:
    """As large as a product of two inputs, summed, may be in float16; the checker halves them for products of more."""
    return draw.values * 2.0 ** math.floor(math.log2(math.sqrt(_MOST / math.sqrt(draw.length))))


def huge(draw: Draw) -> Any:
    """Far from where an exponential overflows; left out where the outputs do."""
    return draw.values * 1024.0


def constant(draw: Draw) -> Any:
    """One value everywhere: what a mask lets through twice, or not at all, changes every sum."""
    return draw.xp.zeros_like(draw.values) + min(1.0, math.sqrt(_MOST / draw.length))


def ramp(draw: Draw) -> Any:
    """Rises with the position and starts over, with another period for each input."""
    period = _PERIODS[draw.index % len(_PERIODS)]
    return draw.xp.astype(draw.position % period, draw.values.dtype) / period - 0.5


def sparse(draw: Draw) -> Any:
    """One element in twenty, zero elsewhere."""
    return draw.xp.where(draw.xp.abs(draw.values) > 2.0, draw.values, draw.xp.zeros_like(draw.values))


def alternating(draw: Draw) -> Any:
    """Neighbours of opposite sign, none near zero, so that sums cancel."""
    sign = 1.0 - 2.0 * draw.xp.astype(draw.position % 2, draw.values.dtype)
    return sign * (1.0 + draw.xp.abs(draw.values))


def infinite(draw: Draw) -> Any:
    """-inf in the first half of every second row and in scattered places, never in a whole row."""
    extent = draw.values.shape[-1]
    position = draw.position
    column, row = position % extent, position // extent
    masked = ((row % 2 == 1) & (column < extent // 2)) | (draw.values < -1.0)
    return draw.xp.where(masked & (column != extent - 1), draw.xp.zeros_like(draw.values) - math.inf, draw.values)


FOR_FINALISTS: Mapping[str, Distribution] = {
    "large": large,
    "huge": huge,
    "constant": constant,
    "ramp": ramp,
    "sparse": sparse,
    "alternating": alternating,
    "with infinities": infinite,
}


def distributions(operator: Operator, workload: Workload, specs: Sequence[TensorSpec]) -> dict[str, list[Distribution]]:
    """Name -> distribution of each of the inputs `specs`, for those that the operator defines.

    Only inputs that the operator names get infinities; the others stay normal beside them.
    """
    infinities = operator.infinite_inputs(workload)
    found = {name: [d] * len(specs) for name, d in FOR_FINALISTS.items() if d is not infinite}
    if infinities:
        found["with infinities"] = [infinite if s.name in infinities else normal for s in specs]
    return found
