"""Tuned logs in Python: the schedule that was tuned for exactly these arrays, as a function.

kernel = autotune.load("autotune-runs/FOLDER").kernel("attention", q, k, v, causal=1)
o = kernel(q, k, v)
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np

from autotune.builders import find_generator
from autotune.devices.base import DeviceInfo
from autotune.devices.cpu import cpu_info
from autotune.devices.cuda import torch_info
from autotune.environment import read_environment
from autotune.generators.base import BoundLaunch, BuildError
from autotune.identity import Identity, Judgement, Reading, judge
from autotune.inputs import filled
from autotune.recall import Winner, recall
from autotune.records import TaskData
from autotune.reuse.agreement import agrees
from autotune.task_options import TaskOptions, make_task
from autotune.toolchain import tool_versions
from autotune.tuned_log import Entry, entries_of
from search_spaces import registry
from search_spaces.errors import BadLog, InvalidWorkload, NothingValid
from search_spaces.target import parse_target
from search_spaces.task import Task

# What compiled CPU kernels assume of their arguments.
_ALIGNMENT = 64
_MOST_LISTED = 5


def load(path: Path | str, policy: str = "compatible", operators: Sequence[str] = ()) -> Tuned:
    """Opens a tuned log, a journal or a run's folder; builds and runs nothing.

    Args:
        path: It.
        policy: "exact" takes only what was measured on this very device with this very software. "compatible" takes
            also what was recorded elsewhere on the same arch with the same source, and compares it with the operator's
            reference before it is given out. "refuse" raises on the first difference, listing all.
        operators: Files and modules of operators that may be imported where the log names them.

    Raises:
        BadLog: It cannot be read.
    """
    return Tuned(tuple(entries_of(Path(path))), Reading(policy), tuple(operators))


@dataclass(frozen=True)
class Tuned:
    """The entries of a log, with how those of another identity are treated; see `load`."""

    entries: tuple[Entry, ...]
    policy: Reading = Reading.COMPATIBLE
    operators: tuple[str, ...] = ()

    def kernel(self, operator: str, *inputs: Any, **axes: int) -> TunedKernel:
        """The tuned schedule for exactly these inputs on the device where they are, built and loaded.

        Args:
            operator: Its name as in the log: "attention", or "my_op.py:MyOp".
            *inputs: Arrays in the operator's order: numpy's for llvm, torch's CUDA tensors for cuda; their values do
                not matter. Dense and row-major.
            **axes: Axes that no shape tells, such as causal=1.

        Raises:
            NothingValid: It was not tuned for these, or what was tuned is not valid here; the reasons are said.
            OtherIdentity: The policy is to refuse, and something differs.
            AutotuneError: The log names an operator that is not trusted.
        """
        device, fitting = _device_of(inputs), self._fitting(operator, inputs, axes)
        reasons = []
        for entry in sorted(
            fitting, key=lambda e: (e.unverified, e.device.name != device.name, not e.raced, e.seconds)
        ):
            try:
                return _made(entry, device, self.policy, self.operators, inputs[0])
            except (_NotHere, BadLog) as reason:
                reasons.append(str(reason))
        raise NothingValid(f"{operator} was tuned for these inputs, but not for use here: {'; '.join(reasons)}")

    def _fitting(self, operator: str, inputs: Sequence[Any], axes: dict[str, int]) -> list[Entry]:
        """Entries of exactly these inputs and axes, all of one workload."""
        kind = "cuda" if _is_cuda(inputs) else "llvm"
        mine = [e for e in self.entries if operator in (e.task.workload.operator, e.task.reference)]
        here = [e for e in mine if parse_target(e.task.target).kind == kind and not e.foreign]
        asked = [(tuple(i.shape), _dtype(i)) for i in inputs]
        named = axes.items()
        found = [
            e
            for e in here
            if [(t.shape, t.dtype) for t in e.task.tensors if not t.output] == asked
            and named <= dict(e.task.workload.axes).items()
        ]
        if not found:
            known = list(dict.fromkeys(str(e.task.workload) for e in here))
            more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
            shapes = ", ".join(f"{dtype} {'x'.join(map(str, shape))}" for shape, dtype in asked)
            raise NothingValid(
                f"{operator} of {shapes} was not tuned for {kind}",
                f"tuned: {'; '.join(known[:_MOST_LISTED]) or 'nothing of it'}{more}",
            )
        workloads = list(dict.fromkeys(e.task.workload for e in found))
        if len(workloads) > 1:
            raise InvalidWorkload(
                f"these inputs fit {' and '.join(map(str, workloads))}", "name the axes that tell them apart"
            )
        return found


@dataclass(frozen=True, repr=False)
class TunedKernel:
    """A tuned schedule, built for this device.

    Attributes:
        winner: What the log recorded.
        judgement: How this machine differs from the one that it was recorded on.
        launch: Fixes arguments: takes inputs and outputs, gives what launches once.
        allocate: Makes uninitialised outputs.
    """

    winner: Winner
    judgement: Judgement
    launch: Callable[[Sequence[Any], Sequence[Any]], BoundLaunch]
    allocate: Callable[[tuple[int, ...], str], Any]

    def __repr__(self) -> str:
        """Of what, on what and with which schedule: the log's entry has hundreds of times."""
        return f"<tuned kernel: {self.winner}, {self.winner.schedule}>"

    def __call__(self, *inputs: Any) -> Any:
        """Computes on inputs of the shapes that it was tuned for; gives the output, a tuple where there are several.

        On a GPU the work is queued on torch's current stream.

        Raises:
            InvalidWorkload: The inputs are not what it was tuned for.
        """
        specs = self.winner.task.operator.tensors(self.winner.task.workload)
        outputs = tuple(self.allocate(t.shape, t.dtype) for t in specs if t.output)
        self.bind(inputs, outputs)()
        return outputs if len(outputs) > 1 else outputs[0]

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        """Fixes the arguments; what is returned launches once whenever it is called, at the least cost.

        Raises:
            InvalidWorkload: They are not what it was tuned for, not dense, or on a CPU not aligned to 64 bytes.
        """
        specs = self.winner.task.operator.tensors(self.winner.task.workload)
        arrays = (*inputs, *outputs)
        if len(arrays) != len(specs):
            raise InvalidWorkload(f"{self.winner.task.workload} takes {len(specs)} arrays, got {len(arrays)}")
        for spec, array in zip(specs, arrays, strict=True):
            if (tuple(array.shape), _dtype(array)) != (spec.shape, spec.dtype):
                raise InvalidWorkload(
                    f"{spec.name} is {_dtype(array)} {tuple(array.shape)}, tuned for {spec.dtype} {spec.shape}"
                )
            if not _is_dense(array):
                raise InvalidWorkload(f"{spec.name} is not dense and row-major", "make it contiguous")
        if self.winner.task.target.kind == "cuda":
            return self._enqueue(inputs, outputs)
        if any(o.ctypes.data % _ALIGNMENT for o in outputs):
            raise InvalidWorkload("an output is not aligned to 64 bytes", "take one that `allocate` made")
        return self._enqueue([i if i.ctypes.data % _ALIGNMENT == 0 else _aligned_copy(i) for i in inputs], outputs)

    def _enqueue(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        launch = self.launch(inputs, outputs)

        # The binary's folder lives as long as this kernel, which the launch must therefore keep.
        def enqueue(_kernel: object = self) -> object:
            return launch()

        return enqueue


class _NotHere(Exception):
    """Why an entry is of no use here."""


def _made(entry: Entry, device: DeviceInfo, policy: Reading, operators: Sequence[str], like: Any) -> TunedKernel:
    """The entry's schedule as a kernel.

    Raises:
        _NotHere: It is not allowed, does not build, or computes something else here.
        BadLog: What it needs has changed since.
        OtherIdentity: The policy is to refuse.
    """
    winner = recall(entry, operators)
    task = make_task(TaskOptions.of(entry.task), measure_roof=False)
    if not task.target.runs_on(device.arch):
        raise _NotHere(f"{winner} does not run on {device.arch}")
    here = Identity.of(TaskData.of(task), device, read_environment(tool_versions(task)), entry.policy)
    judgement = judge(entry, here, policy)
    if not judgement.allowed:
        raise _NotHere("; ".join(map(str, judgement.differences)))
    generator = find_generator(winner.task.sketch_of(winner.schedule).generator)
    missing = generator.missing()
    if missing is not None:
        raise _NotHere(missing)
    folder = Path(tempfile.mkdtemp(prefix="autotune-kernel-"))
    try:
        artifact = generator.build(winner.task, winner.schedule, folder)
        loaded = generator.load(winner.task, winner.schedule, artifact, folder)
        made = TunedKernel(winner, judgement, loaded.bind, _allocator(like))
        if (judgement.must_verify or entry.unverified) and not _verified(made, winner.task, like):
            raise _NotHere(f"{winner}: it computes wrong values here")
    except (BuildError, RuntimeError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise _NotHere(f"it does not build or load: {' '.join(str(error).split())[:300]}") from error
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(made, shutil.rmtree, folder, ignore_errors=True)
    return made


def _verified(kernel: TunedKernel, task: Task, like: Any) -> bool:
    """Whether it computes what the operator says, on random inputs."""
    xp = array_api_compat.array_namespace(like)
    rng = np.random.default_rng(0)
    inputs = []
    for spec in task.operator.tensors(task.workload):
        if not spec.output:
            array = kernel.allocate(spec.shape, spec.dtype)
            array[...] = xp.asarray(filled(np, rng.standard_normal(spec.shape, dtype=np.float32), spec))
            inputs.append(array)
    made = kernel(*inputs)
    return agrees(task, xp, inputs, made if isinstance(made, tuple) else (made,))


def _is_cuda(inputs: Sequence[Any]) -> bool:
    return bool(inputs) and bool(getattr(inputs[0], "is_cuda", False))


def _device_of(inputs: Sequence[Any]) -> DeviceInfo:
    """The device where the inputs are.

    Raises:
        InvalidWorkload: They are neither numpy's nor torch's on the current CUDA device.
    """
    if all(isinstance(i, np.ndarray) for i in inputs):
        return cpu_info()
    if not all(getattr(i, "is_cuda", False) for i in inputs):
        raise InvalidWorkload("the inputs are neither numpy arrays nor torch tensors on a GPU")
    torch = registry.optional("torch", "cuda")
    if {i.device.index for i in inputs} != {torch.cuda.current_device()}:
        raise InvalidWorkload("the inputs are not on torch's current device", "use torch.cuda.device")
    return torch_info(torch, inputs[0].device)


def _dtype(array: Any) -> str:
    return str(array.dtype).removeprefix("torch.")


def _is_dense(array: Any) -> bool:
    return bool(array.flags.c_contiguous if isinstance(array, np.ndarray) else array.is_contiguous())


def _allocator(like: Any) -> Callable[[tuple[int, ...], str], Any]:
    if isinstance(like, np.ndarray):
        return _aligned
    torch, device = registry.optional("torch", "cuda"), like.device

    def allocate(shape: tuple[int, ...], dtype: str) -> Any:
        return torch.empty(shape, dtype=getattr(torch, dtype), device=device)

    return allocate


def _aligned(shape: tuple[int, ...], dtype: str) -> Any:
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    memory = np.empty(size + _ALIGNMENT, np.int8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + size].view(kind).reshape(shape)


def _aligned_copy(array: Any) -> Any:
    made = _aligned(array.shape, str(array.dtype))
    made[...] = array
    return made
