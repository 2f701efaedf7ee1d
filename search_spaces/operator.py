"""Operators and workloads: what is computed, apart from how.

An operator file imports nothing heavy. Array and compiler namespaces (numpy or torch as `xp`, `torch`, TVM's
`te` and `topi`) are passed in by the one place that has loaded them.
"""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from search_spaces.errors import InvalidWorkload, UnknownName
from search_spaces.space import digest

if TYPE_CHECKING:
    from search_spaces.sketch import Sketch

ITEMSIZE: Mapping[str, int] = {"float16": 2, "bfloat16": 2, "float32": 4, "int8": 1, "int32": 4, "float8_e4m3fn": 1}
# Relative spacing of the values of a dtype: the unit in which results are compared. Whole numbers must be equal.
EPSILON: Mapping[str, float] = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}
# Largest finite value, with room for the rounding of a result.
LARGEST: Mapping[str, float] = {"float16": 6.5e4, "bfloat16": 3.3e38, "float32": 3.3e38, "int32": 2.0**31 - 1}
Launch = Callable[[], object]
# Extents tried for the axes of odd workloads, the largest that fits first: just above a power of two, and primes just
# below one. Tiles are powers of two, so that each leaves a ragged rest.
_ABOVE, _BELOW = (257, 129, 65, 33, 17, 9, 5, 3, 2), (127, 31, 7, 3, 2)
# An odd workload is checked in milliseconds.
_EDGE_OPERATIONS, _EDGE_BYTES = 1e8, 4e6


@dataclass(frozen=True)
class Axis:
    """A dimension or flag of an operator.

    Attributes:
        name: As in `--shape NAME=VALUE`.
        meaning: Shown by `autotune ops`.
        least: Smallest value allowed.
        choices: The only values allowed; () for any from `least` up.
    """

    name: str
    meaning: str
    least: int = 1
    choices: tuple[int, ...] = ()


class Content(StrEnum):
    """What the elements of an input are.

    `CODES`: several small integers packed into each, so that all bits count. `PAGES`: indices below a bound, no two
    equal. `OFFSETS`: where groups end that lie one after the other, the last one at a bound; a group may be empty.
    `CHOICES`: indices below a bound, no two equal in a row of the last axis.
    """

    VALUES = "values"
    CODES = "codes"
    PAGES = "pages"
    OFFSETS = "offsets"
    CHOICES = "choices"


@dataclass(frozen=True)
class TensorSpec:
    """One argument: inputs come first, outputs last, all dense and row-major.

    Attributes:
        name: In the operator's formula.
        shape: Extents.
        dtype: Of its elements.
        output: Whether it is written.
        content: What the elements of an input are.
        bound: The bound of pages, offsets and choices.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    output: bool = False
    content: Content = Content.VALUES
    bound: int = 0

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        size = ITEMSIZE[self.dtype]
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class Cost:
    """What must be done at least: the roofline's two numbers.

    Attributes:
        operations: Arithmetic operations, a multiply-add counted as two.
        bytes: Device memory moved if every input is read and every output written once.
    """

    operations: float
    bytes: float


@dataclass(frozen=True)
class Workload:
    """An operator with concrete axes and dtype.

    Attributes:
        operator: The operator's name.
        axes: Name and value, in the operator's order.
        dtype: Of the tensors; products are accumulated in float32.
    """

    operator: str
    axes: tuple[tuple[str, int], ...]
    dtype: str

    def __getitem__(self, axis: str) -> int:
        return self._values[axis]

    @cached_property
    def _values(self) -> dict[str, int]:
        return dict(self.axes)

    @property
    def values(self) -> tuple[int, ...]:
        """The axes' values, in the operator's order."""
        return tuple(value for _, value in self.axes)

    def __str__(self) -> str:
        return f"{self.operator} {','.join(f'{k}={v}' for k, v in self.axes)} {self.dtype}"

    @cached_property
    def key(self) -> str:
        """A short stable hash."""
        return digest([self.operator, [list(a) for a in self.axes], self.dtype])


class Operator(ABC):
    """What is computed. Stateless; one instance serves every workload.

    Class attributes:
        name: Name on the command line, also in records.
        summary: One line for `autotune ops`.
        axes: In order.
        dtypes: Those it can be asked with.
    """

    name: str
    summary: str
    axes: tuple[Axis, ...]
    dtypes: tuple[str, ...]

    @abstractmethod
    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """Axes and `dtype` where the user names none, for target kind "cuda" or "llvm"."""

    @abstractmethod
    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """Arguments in order, outputs last."""

    @abstractmethod
    def cost(self, workload: Workload) -> Cost:
        """Operations and bytes of the workload."""

    @abstractmethod
    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The outputs from float64 inputs, in float64.

        Args:
            workload: The workload.
            xp: An array namespace of the array API standard for the inputs (numpy's or torch's).
            inputs: The inputs upcast to float64.
        """

    def reduction_length(self, workload: Workload) -> int:
        """Number of terms summed into one output element; scales the tolerance."""
        return 1

    def arithmetic(self, workload: Workload) -> str:
        """The dtype whose peak rate bounds it: that of the operands where it is not the workload's."""
        return workload.dtype

    def infinite_inputs(self, workload: Workload) -> tuple[str, ...]:
        """Inputs in which -inf has a meaning, as long as no row of the last axis holds nothing else."""
        return ()

    def check(self, workload: Workload) -> None:
        """Raises InvalidWorkload where axes do not go together."""
        return

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...] | None:
        """TE tensors, inputs first, outputs last, for TVM's sketches; None where there is no TE definition."""
        return None

    def edge_workloads(self, workload: Workload) -> tuple[Workload, ...]:
        """A few small workloads of the same kind on which sketches are easily wrong, for a closer look at finalists.

        The most telling first. Here: all axes that take any value just above a power of two; at a prime just below one;
        at their least. No axis is larger than in `workload`, and axes with choices stay. Override where axes hang
        together in another way.
        """
        least = [value if axis.choices else axis.least for axis, value in zip(self.axes, workload.values, strict=True)]
        found = [made for sizes in (_ABOVE, _BELOW, ()) if (made := self._edge(workload, least, sizes)) is not None]
        return tuple(w for w in dict.fromkeys(found) if w != workload)

    def _edge(self, workload: Workload, least: Sequence[int], sizes: Sequence[int]) -> Workload | None:
        """From the last axis to the first, the first of `sizes` with which the workload is valid and small."""
        chosen = self._small(workload, least)
        if chosen is None:
            return None
        for i, axis in reversed(list(enumerate(self.axes))):
            fitting = [size for size in sizes if axis.least < size <= workload.values[i] and not axis.choices]
            wider = (self._small(workload, (*chosen.values[:i], size, *chosen.values[i + 1 :])) for size in fitting)
            chosen = next(filter(None, wider), chosen)
        return chosen

    def _small(self, workload: Workload, values: Sequence[int]) -> Workload | None:
        """`workload` with other values; None where they do not go together or make it large."""
        axes = tuple((axis.name, value) for axis, value in zip(self.axes, values, strict=True))
        made = Workload(workload.operator, axes, workload.dtype)
        try:
            self.check(made)
        except InvalidWorkload:
            return None
        size = sum(t.bytes for t in self.tensors(made))
        return made if size <= _EDGE_BYTES and self.cost(made).operations <= _EDGE_OPERATIONS else None

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """What a numpy user would call, by name, each writing `outputs` if it can."""
        return {}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """What a torch user would call, by name, at its best: `out=` given, best backend chosen."""
        return {}

    def sketches(self) -> Sequence[Sketch]:
        """Sketches of its own, in addition to those in `search_spaces/sketches`."""
        return ()

    @cached_property
    def source_hash(self) -> str:
        """Changes whenever the text of the operator's file does, or of one with a class that it extends."""
        modules = [c.__module__ for c in type(self).__mro__ if issubclass(c, Operator) and c is not Operator]
        files = dict.fromkeys(Path(str(sys.modules[m].__file__)) for m in modules)
        return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]

    def workload(self, kind: str = "cuda", dtype: str | None = None, **axes: int) -> Workload:
        """Builds a workload, filling in the defaults of target kind `kind`.

        Raises:
            UnknownName: An axis or dtype that the operator does not have.
            InvalidWorkload: A value that it cannot take.
        """
        known = {a.name: a for a in self.axes}
        for name, value in axes.items():
            if name not in known:
                raise UnknownName.of(f"axis of {self.name}", name, known)
            axis = known[name]
            if value < axis.least or (axis.choices and value not in axis.choices):
                allowed = " or ".join(map(str, axis.choices)) or f"{axis.least} or more"
                raise InvalidWorkload(f"{self.name}: {name}={value} is impossible", f"{name} must be {allowed}")
        given = dict(self.defaults(kind))
        default_dtype = str(given.pop("dtype"))
        given.update(axes)
        chosen = dtype or default_dtype
        if chosen not in self.dtypes:
            raise UnknownName.of(f"dtype for {self.name}", chosen, self.dtypes)
        made = Workload(self.name, tuple((a.name, int(given[a.name])) for a in self.axes), chosen)
        self.check(made)
        return made
