"""Design spaces of MetaSchedule as knobs: each sampling instruction of a trace is one, named by what it decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search_spaces import registry
from search_spaces.schedule import Value
from search_spaces.sketches.tvm.base import EXTRA, nodes
from search_spaces.sketches.tvm_names import block_realize_class, buffer_of
from search_spaces.space import Family, Knob

JOBS_PER_CORE = (1, 2, 4, 16)
VECTOR_LENGTHS = (8, 16, 32, 64)
ROOT_LOCATION = -1
REDUCTION = 2
# Replays with different seeds that show which compute locations a block can have.
LOCATION_SEEDS = range(1, 7)


@dataclass(frozen=True)
class Choice:
    """One decision of a trace.

    Attributes:
        instruction: Its place in the trace.
        knob: The knob that makes it.
        edits: True where the value of an annotation is replaced rather than a sample decided.
    """

    instruction: int
    knob: Knob
    edits: bool = False


@dataclass(frozen=True)
class Structure:
    """One design space: a trace and the decisions that it leaves open."""

    trace: Any
    choices: tuple[Choice, ...]

    def decided(self, knobs: Mapping[str, Value]) -> Any:
        """The trace with the decisions of `knobs`."""
        s_tir = registry.optional("tvm.s_tir.schedule", EXTRA)
        instructions = list(self.trace.insts)
        decisions: dict[Any, Any] = {}
        for choice in self.choices:
            instruction, value = instructions[choice.instruction], knobs[choice.knob.name]
            if choice.edits:
                instructions[choice.instruction] = s_tir.Instruction(
                    instruction.kind, [instruction.inputs[0], value], instruction.attrs, instruction.outputs
                )
            elif instruction.kind.name == "SampleCategorical":
                decisions[instruction] = choice.knob.values.index(value)
            else:
                decisions[instruction] = list(value) if isinstance(value, tuple) else value
        return s_tir.Trace(instructions, decisions)


def factorisations(extent: int, parts: int, most_innermost: int) -> tuple[tuple[int, ...], ...]:
    """Every ordered product of `parts` factors that is `extent`, the last one at most `most_innermost`."""
    if parts == 1:
        return ((extent,),) if extent <= most_innermost else ()
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    return tuple((d, *rest) for d in divisors for rest in factorisations(extent // d, parts - 1, most_innermost))


def structure(module: Any, trace: Any, cores: int) -> Structure:
    """The open decisions of a design space of `module`, those with one candidate left out."""
    replays = [_Replay(module, trace, seed) for seed in LOCATION_SEEDS]
    choices: dict[str, Choice] = {}
    for index, instruction in enumerate(trace.insts):
        found = _knob(replays, trace.insts, index, cores)
        if found is None or len(found[2]) < 2:
            continue
        name, family, values = found
        unique = next(n for n in (name, *(f"{name}.{i}" for i in range(2, 99))) if n not in choices)
        edits = instruction.kind.name == "Annotate"
        choices[unique] = Choice(index, Knob(unique, family, values), edits)
    return Structure(trace, tuple(choices.values()))


class _Replay:
    """One replay of a trace with random decisions, watched for what its instructions are about.

    Attributes:
        subjects: By instruction: the name of the block that it is about.
        loops: By instruction that samples a tile: the loop's name and extent.
        locations: By instruction that samples a compute location: the loops in which the block can be computed.
    """

    def __init__(self, module: Any, trace: Any, seed: int) -> None:
        s_tir = registry.optional("tvm.s_tir.schedule", EXTRA)
        self.subjects: dict[int, str] = {}
        self.loops: dict[int, tuple[str, int]] = {}
        self.locations: dict[int, int] = {}
        self._instructions = list(trace.insts)
        self._block_of: dict[Any, str] = {}
        self._next = 0
        self._schedule = s_tir.Schedule(module, seed=seed, error_render_level="fast")
        s_tir.Trace(self._instructions, {}).apply_to_schedule(self._schedule, True, self._watch)

    def _watch(self, instruction: Any, inputs: Sequence[Any], _attrs: Sequence[Any], decision: Any) -> Any:
        index, kind = self._next, instruction.kind.name
        self._next += 1
        written = self._instructions[index]
        if kind == "SamplePerfectTile":
            loop = self._schedule.get(inputs[0])
            self.loops[index] = (str(loop.loop_var.name), int(loop.extent))
        if kind in ("GetLoops", "SampleComputeLocation", "Annotate") and "SBlock" in type(inputs[0]).__name__:
            self.subjects[index] = str(self._schedule.get(inputs[0]).name_hint)
        elif written.inputs and written.inputs[0] in self._block_of:
            self.subjects[index] = self._block_of[written.inputs[0]]
        if kind in ("GetLoops", "Split", "Fuse") and index in self.subjects:
            self._block_of.update(dict.fromkeys(written.outputs, self.subjects[index]))
        if kind == "SampleComputeLocation":
            consumers = self._schedule.get_consumers(inputs[0])
            self.locations[index] = max((self._depth(inputs[0], c) for c in consumers), default=0)
        return decision

    def _depth(self, block: Any, consumer: Any) -> int:
        """Loops around `consumer` in which `block` can be computed; fewer where `block` is a reduction.

        Within a loop that reduces, TVM would initialise a sum only once, outside of that loop, and so compute wrong
        values; within a loop that the sum does not depend on, it would be computed again and again.
        """
        loops = [self._schedule.get(loop) for loop in self._schedule.get_loops(consumer)]
        made, user = self._schedule.get(block), self._schedule.get(consumer)
        if not any(v.iter_type == REDUCTION for v in made.iter_vars):
            return len(loops)
        tvm = registry.optional("tvm", EXTRA)
        realizes = nodes(loops[0], block_realize_class())
        reducing = {
            var
            for realize in realizes
            for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type == REDUCTION
            for var in nodes(value, tvm.tirx.Var)
        }
        read = {
            var
            for region in user.reads
            if buffer_of(region).same_as(buffer_of(made.writes[0]))
            for axis in region.region
            for var in nodes(axis.min, tvm.tirx.Var)
        }
        needed = {
            var
            for realize in realizes
            if realize.block.same_as(user)
            for axis, value in zip(user.iter_vars, realize.iter_values, strict=True)
            if axis.var in read
            for var in nodes(value, tvm.tirx.Var)
        }
        stops = (
            i
            for i, loop in enumerate(loops)
            if loop.loop_var in reducing or (int(loop.extent) > 1 and loop.loop_var not in needed)
        )
        return next(stops, len(loops))


_Found = tuple[str, Family, tuple[Value, ...]]


def _knob(replays: Sequence[_Replay], instructions: Sequence[Any], index: int, cores: int) -> _Found | None:
    """Name, family and values of the decision at `index`; None where there is none to make."""
    instruction, first = instructions[index], replays[0]
    block = first.subjects.get(index, "")
    match instruction.kind.name:
        case "SamplePerfectTile":
            parts, innermost = (int(a) for a in instruction.attrs)
            loop, extent = first.loops[index]
            return f"{block}.tile_{loop}", Family.TILE_SIZES, factorisations(extent, parts, innermost)
        case "SampleComputeLocation":
            depth = max(replay.locations[index] for replay in replays)
            return f"{block}.location", Family.LOOP_ORDER, tuple(range(ROOT_LOCATION, depth))
        case "SampleCategorical":
            use = _use(first, instructions, index)
            values = tuple(int(c) for c in instruction.attrs[0])
            return (*use, values) if use is not None else None
        case "Annotate":
            if instruction.attrs[0] == "meta_schedule.vectorize":
                return "vector", Family.VECTOR_WIDTH, VECTOR_LENGTHS
            if instruction.attrs[0] == "meta_schedule.parallel":
                return "jobs", Family.PARALLELISM, tuple(cores * jobs for jobs in JOBS_PER_CORE)
    return None


def _use(replay: _Replay, instructions: Sequence[Any], index: int) -> tuple[str, Family] | None:
    """What a sampled category is used for; None where the rules made it and then did not use it."""
    sampled = instructions[index].outputs[0]
    for place in range(index + 1, len(instructions)):
        user = instructions[place]
        if not any(sampled.same_as(i) for i in user.inputs if hasattr(i, "same_as")):
            continue
        block = replay.subjects.get(place, "")
        if user.kind.name == "Split":
            return f"{block}.threads", Family.WARPS
        if user.kind.name == "Annotate" and "unroll" in user.attrs[0]:
            return "unroll", Family.UNROLLING
        return f"{block}.fetch", Family.VECTOR_WIDTH
    return None
