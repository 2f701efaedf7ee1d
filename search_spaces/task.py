"""A task: an operator's workload on a target, and the space of its schedules."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

from search_spaces import registry
from search_spaces.errors import InvalidWorkload, NothingValid
from search_spaces.hardware import Hardware
from search_spaces.operator import Operator, Workload
from search_spaces.sketch import Sketch
from search_spaces.space import Schedule, ScheduleSpace, SketchSpace, digest
from search_spaces.target import Target

OPERATORS = "search_spaces.operators"
# In this order a default is looked for: the first generator that has one gives the schedule to beat.
GENERATORS = ("triton", "tvm")


def find_operator(name: str) -> Operator:
    """The operator called `name`: a file of `search_spaces/operators`, a dotted module, or `file.py:Class`."""
    found = registry.find(OPERATORS, name, "operator")
    operator = found() if isinstance(found, type) else found
    assert isinstance(operator, Operator), f"{name} is no Operator"
    return operator


@dataclass(frozen=True)
class Task:
    """What is tuned. Plain data, so that it travels to other processes; what follows from it is derived there.

    Attributes:
        reference: How the operator was named: a registry name or `file.py:Class`.
        workload: The operator's axes and dtype.
        target: What is compiled for.
        hardware: Limits of the target's arch and the peaks for the roofline.
        only: Prefixes of the sketch names to keep; () keeps all.
    """

    reference: str
    workload: Workload
    target: Target
    hardware: Hardware
    only: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[type[Task], tuple[object, ...]]:
        return Task, (self.reference, self.workload, self.target, self.hardware, self.only)

    @cached_property
    def operator(self) -> Operator:
        """The operator itself."""
        return find_operator(self.reference)

    @cached_property
    def sketches(self) -> Mapping[str, Sketch]:
        """Sketches that apply, by name, in the order in which they are offered."""
        return {s.name: s for s in self._candidates if s.name not in self.refusals}

    @cached_property
    def refusals(self) -> Mapping[str, str]:
        """Sketches of this operator that do not apply here, each with its reason."""
        reasons = {s.name: reason for s in self._candidates if (reason := s.refuses(self)) is not None}
        applying = [s for s in self._candidates if s.name not in reasons]
        giver = next((s.name for s in applying if not s.fallback and self._default_of(s) is not None), None)
        if giver is not None:
            reasons.update({s.name: f"{giver} gives the untuned default" for s in applying if s.fallback})
        return reasons

    @cached_property
    def _candidates(self) -> tuple[Sketch, ...]:
        found: list[Sketch] = list(self.operator.sketches())
        for generator in GENERATORS:
            package = f"search_spaces.sketches.{generator}"
            found += [registry.find(package, name, "sketch") for name in registry.names(package)]
        mine = [s for s in found if s.operator in (None, self.workload.operator)]
        return tuple(s for s in mine if not self.only or s.name.startswith(self.only))

    @cached_property
    def space(self) -> ScheduleSpace:
        """Every schedule of every sketch that applies."""
        spaces: list[SketchSpace] = []
        for sketch in self.sketches.values():
            with self._judging(sketch):
                spaces += sketch.spaces(self)
        if not spaces:
            why = "; ".join(f"{name}: {reason}" for name, reason in self.refusals.items())
            raise NothingValid(f"no sketch applies to {self.workload} on {self.target}", why or "no sketch is known")
        sources = [[s.name, s.source_hash] for s in self.sketches.values()]
        return ScheduleSpace(tuple(spaces), digest([sources, asdict(self.hardware.limits)]))

    def sketch_of(self, schedule: Schedule) -> Sketch:
        """The sketch that a schedule belongs to."""
        return self.sketches[schedule.sketch.partition("/")[0]]

    @cached_property
    def default(self) -> Schedule:
        """The untuned schedule that a search must beat: candidate 0."""
        return self.defaults[0]

    @cached_property
    def defaults(self) -> tuple[Schedule, ...]:
        """The untuned schedule of every sketch that has one, the one to beat first."""
        found = tuple(d for sketch in self.sketches.values() if (d := self._default_of(sketch)) is not None)
        if not found:
            raise NothingValid(f"no sketch offers a default for {self.workload} on {self.target}")
        return found

    def _default_of(self, sketch: Sketch) -> Schedule | None:
        with self._judging(sketch):
            return sketch.default(self)

    @contextlib.contextmanager
    def _judging(self, sketch: Sketch) -> Iterator[None]:
        """A sketch, perhaps a user's own, that makes a space which cannot be is at fault, not this program."""
        try:
            yield
        except ValueError as error:
            raise InvalidWorkload(
                f"sketch {sketch.name} makes no space of {self.workload} on {self.target}: {error}",
                "have its `refuses` say where it does not apply",
            ) from error

    @cached_property
    def floor_seconds(self) -> float:
        """The roofline's bound: no program runs faster than its arithmetic or its memory traffic allows."""
        cost = self.operator.cost(self.workload)
        peak = self.hardware.peak(self.operator.arithmetic(self.workload))
        return max(cost.operations / peak, cost.bytes / self.hardware.model.bandwidth)

    @cached_property
    def written_bytes(self) -> int:
        """Of all outputs."""
        return sum(tensor.bytes for tensor in self.operator.tensors(self.workload) if tensor.output)

    @cached_property
    def key(self) -> str:
        """Identifies workload, target and space: records with another key are not comparable."""
        return digest([self.workload.key, str(self.target), self.space.fingerprint])
