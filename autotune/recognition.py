"""What a record of MetaSchedule is of: which task of ours, and which of its schedules.

TVM is never given anything from a file. A workload is known by its structural hash, which is held against those of our
own operators for the shapes that the record states; a trace is known by making ours more like it, knob by knob, until
the two are equal. So a record can be taken for no other schedule than one that our own space holds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from autotune.relax_form import relax_key
from search_spaces import registry
from search_spaces.errors import AutotuneError, InvalidSchedule
from search_spaces.operator import Operator, Workload
from search_spaces.schedule import Schedule, Value
from search_spaces.sketches.tvm.base import EXTRA, TvmSketch, workload_module
from search_spaces.space import SketchSpace
from search_spaces.task import OPERATORS, Task, find_operator

Argument = tuple[str, tuple[int, ...]]
# An instruction as kind, inputs, attributes, outputs and decision.
Instruction = list[Any]
Trace = Sequence[Instruction]
# Combinations of an operator's options that are tried.
_MOST_OPTIONS = 256
# Passes over the knobs, legal schedules from which they start, and sketches that are searched more closely.
_PASSES, _STARTS, _NEAREST = 4, 3, 2
# Schedules compared with one trace; traces of ours were found within 540.
_MOST_TRIES = 1000
# More values than an instruction has.
_MANY = 1000
# Extents that an operator is asked with to see which axis each of its tensors' extents is.
_PROBES = tuple(64 * (16 + i) for i in range(1, 12))
_POSTPROCESSING = "EnterPostproc"


def workloads_of(arguments: Sequence[Argument], kind: str) -> Iterator[tuple[str, Workload]]:
    """Operators here, each with the workloads whose tensors have these dtypes and shapes.

    Args:
        arguments: Dtype and shape of inputs and outputs, in order.
        kind: Of the target.
    """
    for name in registry.names(OPERATORS):
        operator = find_operator(name)
        if type(operator).compute is not Operator.compute:
            for workload in _fitting(operator, arguments, kind):
                yield name, workload


def _fitting(operator: Operator, arguments: Sequence[Argument], kind: str) -> Iterator[Workload]:
    free = [axis.name for axis in operator.axes if not axis.choices]
    options = {axis.name: axis.choices for axis in operator.axes if axis.choices}
    combined = itertools.product(operator.dtypes, itertools.product(*options.values()))
    for dtype, chosen in itertools.islice(combined, _MOST_OPTIONS):
        axes = dict(zip(options, chosen, strict=True))
        try:
            probe = operator.workload(kind, dtype, **axes, **dict(zip(free, _PROBES, strict=False)))
            found = _extents(operator, probe, free, arguments)
            if found is None:
                continue
            workload = operator.workload(kind, dtype, **axes, **found)
        except AutotuneError:
            continue
        if [(t.dtype, t.shape) for t in operator.tensors(workload)] == list(arguments):
            yield workload


def _extents(
    operator: Operator, probe: Workload, free: Sequence[str], arguments: Sequence[Argument]
) -> dict[str, int] | None:
    """The extent of each axis, read off the arguments where the probe's tensors have it; None where one is nowhere."""
    tensors = operator.tensors(probe)
    if [(t.dtype, len(t.shape)) for t in tensors] != [(dtype, len(shape)) for dtype, shape in arguments]:
        return None
    axis_of = {probe[name]: name for name in free}
    found = {
        axis_of[extent]: stated
        for tensor, (_, shape) in zip(tensors, arguments, strict=True)
        for extent, stated in zip(tensor.shape, shape, strict=True)
        if extent in axis_of
    }
    return found if set(found) == set(free) else None


def recognised(candidates: Sequence[Task], structural_hash: str) -> Task | None:
    """The task whose function, as tuned here or as Relax makes it, has this hash in the TVM that is installed."""
    hashed = registry.optional("tvm_ffi", EXTRA).structural_hash
    keys: tuple[Callable[[Task], Any], ...] = (workload_module, relax_key)
    for key in keys:
        for task in candidates:
            if str(hashed(key(task)) % 2**64) == structural_hash:
                return task
    return None


def plain_trace(instructions: Sequence[Instruction], decisions: Sequence[tuple[int, Any]]) -> Trace:
    """A trace without its postprocessing, its blocks numbered in the order in which they are named.

    Raises:
        ValueError: It is no trace.
    """
    decided, names, made = dict(decisions), dict[str, int](), []
    for place, instruction in enumerate(instructions):
        kind, inputs, attributes, outputs = instruction
        if kind == _POSTPROCESSING:
            break
        if kind == "GetSBlock":
            named = str(attributes[0]) if attributes else ""
            attributes = [names.setdefault(named, len(names)), *attributes[1:]]
        made.append([kind, list(map(_without_layout, inputs)), attributes, outputs, decided.get(place)])
    return made


def _without_layout(value: Any) -> Any:
    """A value; where it is an object's JSON in a text, its nodes however they were laid out, and not who wrote it."""
    if not (isinstance(value, str) and value.startswith("{")):
        return value
    return msgspec.json.encode(
        msgspec.json.decode(value.encode(), type=dict[str, Any]).get("nodes"), order="sorted"
    ).decode()


def schedule_of_trace(task: Task, trace: Trace) -> Schedule | None:
    """The schedule of `task` that TVM records as this trace, the first found where several are.

    None where none is, or none was found among as many as are worth comparing.
    """
    try:
        return _hunted(task, trace, iter(range(_MOST_TRIES)))
    except _Spent:
        return None


class _Spent(Exception):
    """As many schedules were compared as are worth it."""


def _hunted(task: Task, trace: Trace, tries: Iterator[int]) -> Schedule | None:
    hunts = []
    for space in task.space.sketches:
        sketch = task.sketches[space.sketch.partition("/")[0]]
        if isinstance(sketch, TvmSketch):
            hunt = _Hunt(task, sketch, space, trace, tries)
            if hunt.possible and hunt.come_near(1, _STARTS) == 0:
                return hunt.found
            hunts.append(hunt)
    # Two knobs at a time, one of which may only be right with the other, for the sketches that came nearest.
    possible = sorted((hunt for hunt in hunts if hunt.possible), key=lambda hunt: hunt.distance)
    near = next((hunt for hunt in possible[:_NEAREST] if hunt.come_near(2, _STARTS) == 0), None)
    return near.found if near is not None else None


class _Hunt:
    """The search for a trace among the schedules of one sketch; raises `_Spent` when `tries` ends.

    Attributes:
        possible: Whether every knob has a value that the trace may be of.
        distance: How unlike the trace of the likest schedule so far is.
    """

    def __init__(self, task: Task, sketch: TvmSketch, space: SketchSpace, trace: Trace, tries: Iterator[int]) -> None:
        self._task, self._sketch, self._space, self._trace, self._tries = task, sketch, space, trace, tries
        tiles = {tuple(v) for *_, v in trace if isinstance(v, list) and all(isinstance(part, int) for part in v)}
        self._values = {
            knob.name: [v for v in knob.values if v in tiles or not isinstance(v, tuple)] for knob in space.knobs
        }
        self.possible = all(self._values.values())
        self.distance = math.inf
        self._near: dict[str, Value] = {}

    @property
    def found(self) -> Schedule | None:
        """The likest schedule; None where it is not legal."""
        schedule = self._space.at(self._near)
        return schedule if self._task.space.why_not(schedule) is None else None

    def come_near(self, most: int, starts: int) -> float:
        """Changes at most so many knobs at a time, from random schedules and the likest known; gives the distance."""
        rng = np.random.default_rng(0)
        for place in range(starts):
            drawn = self._space.draw(rng, {})
            if drawn is None or self.distance == 0:
                break
            start = {n: drawn[n] if drawn[n] in known else known[0] for n, known in self._values.items()}
            self._descend(self._near if most > 1 and place == 0 else start, most)
        return self.distance

    def _descend(self, near: dict[str, Value], most: int) -> None:
        distance = self._distance(near)
        for _ in range(_PASSES):
            before = distance
            for change in _changes(self._values, most):
                made = self._distance(tried := {**near, **change})
                if made < distance:
                    near, distance = tried, made
                if distance == 0:
                    break
            if distance in (before, 0):
                break
        if distance <= self.distance:
            self._near, self.distance = near, distance

    def _distance(self, values: dict[str, Value]) -> float:
        """Instructions from the first difference on, infinite where TVM refuses the schedule."""
        if next(self._tries, None) is None:
            raise _Spent
        try:
            made = self._sketch.scheduled(self._task, self._space.at(values)).trace.as_json()
        except InvalidSchedule:
            return math.inf
        ours = plain_trace(_plain(made[0]), _plain(made[1]))
        # What follows the first difference may differ because of it.
        alike = next((i for i, pair in enumerate(zip(ours, self._trace, strict=False)) if pair[0] != pair[1]), None)
        if alike is None:
            return float(abs(len(ours) - len(self._trace)))
        return len(self._trace) - alike + min(1.0, _unlike(ours[alike], self._trace[alike]) / _MANY)


def _changes(values: Mapping[str, Sequence[Value]], most: int) -> Iterator[dict[str, Value]]:
    """Another value of every knob, then of every two where two at once are wanted."""
    for count in range(1, most + 1):
        for names in itertools.combinations(values, count):
            for chosen in itertools.product(*(values[name] for name in names)):
                yield dict(zip(names, chosen, strict=True))


def _unlike(ours: Any, theirs: Any) -> int:
    """Values in which two instructions differ, later ones counting more: an inner factor rests on fewer knobs."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return sum(place * _unlike(*pair) for place, pair in enumerate(zip(ours, theirs, strict=True), start=1))
    # A file has 1 where TVM has True, which are equal in Python.
    return int(ours != theirs)


def _plain(value: Any) -> Any:
    """TVM's containers and numbers as Python's."""
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if hasattr(value, "__iter__"):
        return [_plain(part) for part in value]
    return value.value if hasattr(value, "value") else str(value)
