"""Triton: a schedule is a jitted kernel with constants, compiled by Triton to a cubin with or without a GPU."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from autotune.generators.base import Artifact, BuildError, Generator, Kernel, Resources
from autotune.kernel_usage import kernel_usage
from autotune.triton_kernel import TYPES, Step, TritonKernel, constant, folded, type_of
from search_spaces import registry
from search_spaces.errors import AutotuneError
from search_spaces.sketches.triton.base import (
    Argument,
    DescriptorArgument,
    ScalarArgument,
    TensorArgument,
    TritonLaunch,
    TritonSketch,
    WorkspaceArgument,
)
from search_spaces.space import Schedule
from search_spaces.task import Task

_EXTRA = "cuda"
_GLUON = "triton.experimental.gluon._runtime"
# What the memory allocators of every framework keep, and Triton needs to know for wide loads.
_ALIGNED = [["tt.divisibility", 16]]
# What Triton calls the files of its binaries, CUDA's and HIP's.
_BINARIES = (".cubin", ".hsaco")
# Columns of tensor memory of a Blackwell multiprocessor.
_TENSOR_MEMORY = 512


class TritonGenerator(Generator):
    """Builds with `triton.compile`; loads and launches through Triton's own driver."""

    name = "triton"
    preload = (
        "triton",
        "triton.compiler",
        "triton.compiler.code_generator",
        "triton.backends.nvidia.compiler",
        "triton.language.extra.cuda",
        "triton.language.extra.libdevice",
    )

    def missing(self) -> str | None:
        """Triton has wheels for Linux only, and host descriptors only in its newer versions."""
        spec = importlib.util.find_spec("triton")
        if spec is None or spec.origin is None:
            return f"triton is not installed; pip install 'kernel-autotune[{_EXTRA}]' (Linux only)"
        if not (Path(spec.origin).parent / "tools" / "tensor_descriptor.py").is_file():
            return f"triton {importlib.metadata.version('triton')} has no host descriptors; pip install 'triton>=3.6'"
        return None

    def build(self, task: Task, schedule: Schedule, folder: Path) -> Artifact:
        """Compiles, or finds in `folder` what a schedule with the same binaries left there.

        Of several kernels the main one's resources are told, as those of all together are nobody's.
        """
        sketch = _sketch(task, schedule)
        launches = sketch.launches(task, schedule)
        built = [_built(task, schedule, launch, folder) for launch in launches]
        hashes = [_identity(compiled.kernel, launch) for compiled, launch in zip(built, launches, strict=True)]
        places = [_binary(compiled).parent for compiled in built]
        used = _resources(built[launches.index(sketch.launch(task, schedule))])
        if len(built) == 1:
            return Artifact(str(places[0]), hashes[0], used)
        whole = hashlib.sha256("".join(hashes).encode()).hexdigest()
        return Artifact(str(_gathered(places, folder / "triton" / whole)), whole, used)

    def load(self, task: Task, schedule: Schedule, artifact: Artifact, folder: Path) -> Kernel:
        """Loads the binaries themselves, so that nothing can be compiled again in the worker.

        A device of another arch than the target's gets the target's PTX, which its driver compiles.
        """
        launches, place = _sketch(task, schedule).launches(task, schedule), Path(artifact.path)
        places = [place] if len(launches) == 1 else [place / str(i) for i in range(len(launches))]
        tensors, foreign = task.operator.tensors(task.workload), _device_capability() != _capability(task)
        steps = []
        for launch, kept in zip(launches, places, strict=True):
            source = _source(task, schedule, launch)
            if foreign:
                compiled = _compile(task, source, launch, folder / "ptx", binary_only=False)
                binary = compiled.asm["ptx"].encode() + b"\0"
            else:
                compiled = _kept(source, kept, folder)
                binary = compiled.kernel
            with _configured(folder, binary_only=True):
                steps.append(Step(tensors, launch, compiled, binary))
        return TritonKernel(tensors, steps)

    def versions(self) -> dict[str, str]:
        """Triton's; it brings its own ptxas."""
        return {"triton": importlib.metadata.version("triton")}


def _sketch(task: Task, schedule: Schedule) -> TritonSketch:
    sketch = task.sketch_of(schedule)
    assert isinstance(sketch, TritonSketch), f"{sketch.name} is no Triton sketch"
    return sketch


def _built(task: Task, schedule: Schedule, launch: TritonLaunch, folder: Path) -> Any:
    """One kernel, compiled; raises BuildError where it is refused or needs more than a block can have."""
    try:
        compiled = _compile(task, _source(task, schedule, launch), launch, folder)
    except AutotuneError:
        raise
    except Exception as error:
        raise BuildError(_concise(error)) from error
    limit, shared = task.hardware.limits.shared_per_block, compiled.metadata.shared
    if shared > limit:
        raise BuildError(f"needs {shared} bytes of shared memory; a block has {limit} on {task.target.arch}")
    columns = getattr(compiled.metadata, "tmem_size", None) or 0
    if columns > _TENSOR_MEMORY:
        raise BuildError(f"needs {columns} columns of tensor memory; there are {_TENSOR_MEMORY}")
    return compiled


def _kept(source: Any, place: Path, folder: Path) -> Any:
    """A kernel as it was built into `place`."""
    group = {f.name: str(f) for f in place.iterdir() if f.suffix in (".json", ".cubin")}
    group = {name: path for name, path in group.items() if not name.startswith("__grp__")}
    with _configured(folder, binary_only=True):
        return registry.optional("triton.compiler", _EXTRA).CompiledKernel(source, group, place.name)


def _binary(compiled: Any) -> Path:
    return next(Path(p) for p in compiled.metadata_group.values() if p.endswith(_BINARIES))


def _resources(compiled: Any) -> Resources:
    registers, stack = kernel_usage(_binary(compiled))
    metadata = compiled.metadata
    threads = metadata.num_warps * metadata.target.warp_size
    return Resources(registers, metadata.shared, stack, threads)


def _gathered(places: Sequence[Path], folder: Path) -> Path:
    """A folder with a numbered copy of each; once, however many builders do it."""
    if not folder.exists():
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        for number, place in enumerate(places):
            shutil.copytree(place, part / str(number))
        try:
            part.rename(folder)
        except OSError:  # another builder was first
            shutil.rmtree(part)
    return folder


def _kernel(sketch: TritonSketch, launch: TritonLaunch) -> Any:
    """The jitted function, from the sketch's own file where no module is named."""
    module, _, function = (launch.kernel or sketch.kernel).partition(":")
    found = registry.optional(module, _EXTRA) if module else sys.modules[type(sketch).__module__]
    return getattr(found, function)


@contextlib.contextmanager
def _configured(folder: Path, *, binary_only: bool, hook: object = None) -> Iterator[None]:
    """Points Triton's cache into the run's folder, and leaves out what measuring does not need.

    Only while the block runs: the process may have kernels of its own.
    """
    knobs = registry.optional("triton.knobs", _EXTRA)
    with knobs.cache.scope(), knobs.compilation.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(folder.resolve() / "triton")
        knobs.compilation.store_binary_only = binary_only
        # Line numbers would make binaries differ that do the same.
        knobs.compilation.disable_line_info = True
        knobs.runtime.add_stages_inspection_hook = hook
        yield


def _source(task: Task, schedule: Schedule, launch: TritonLaunch) -> Any:
    """What Triton compiles: the function with the types of its parameters and its constants."""
    kernel = _kernel(_sketch(task, schedule), launch)
    dtypes = {t.name: TYPES[t.dtype] for t in task.operator.tensors(task.workload)}
    names: list[str] = kernel.arg_names
    given = {**launch.arguments, **launch.constants}
    if set(given) != set(names) or [n for n in names if n in launch.arguments] != list(launch.arguments):
        raise TypeError(f"{schedule.sketch} gives {list(given)} for the parameters {names}")
    signature = {name: type_of(argument, dtypes) for name, argument in launch.arguments.items()}
    made = registry.optional("triton.compiler", _EXTRA).ASTSource
    if kernel.is_gluon():
        made = registry.optional(_GLUON, _EXTRA).GluonASTSource
        descriptors = {n: a for n, a in launch.arguments.items() if isinstance(a, DescriptorArgument)}
        signature.update({name: _with_layout(signature[name], argument) for name, argument in descriptors.items()})
    signature.update(dict.fromkeys(launch.constants, "constexpr"))
    signature = {name: signature[name] for name in names}
    constants: dict[str, object] = {name: 1 for name, argument in launch.arguments.items() if folded(argument)}
    constants.update({name: constant(value) for name, value in launch.constants.items()})
    aligned = {(names.index(n),): _ALIGNED for n, argument in launch.arguments.items() if _divisible(argument)}
    return made(kernel, signature, constants, aligned)


def _divisible(argument: Argument) -> bool:
    """Whether Triton may know that it is a multiple of 16: an address or a number."""
    if isinstance(argument, ScalarArgument):
        return argument.specialised and argument.value % 16 == 0
    return isinstance(argument, TensorArgument | WorkspaceArgument)


def _with_layout(described: str, argument: DescriptorArgument) -> str:
    """A descriptor's type for Gluon, which wants to know how its block lies in shared memory."""
    language = registry.optional("triton.experimental.gluon.language", _EXTRA)
    dtype = language.dtype(described.removeprefix("tensordesc<").partition("[")[0])
    layout = language.NVMMASharedLayout.get_default_for(list(argument.block), dtype)
    return f"{described[:-1]},{layout!r}>"


def _capability(task: Task) -> int:
    return int(re.sub(r"\D", "", task.target.arch))


def _device_capability() -> int:
    """Compute capability of the device at hand, 90 for sm_90."""
    return int(registry.optional("triton.runtime.driver", _EXTRA).driver.active.get_current_target().arch)


def _compile(task: Task, source: Any, launch: TritonLaunch, folder: Path, *, binary_only: bool = True) -> Any:
    hip = task.target.kind == "hip"
    target = registry.optional("triton.backends.compiler", _EXTRA).GPUTarget(
        task.target.kind, task.target.arch if hip else _capability(task), task.hardware.limits.warp
    )
    options: dict[str, int] = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    if launch.maxnreg is not None:
        options["maxnreg"] = launch.maxnreg
    hook = _clustering(launch.cluster) if launch.cluster > 1 else None
    # AMD's assembly tells what a kernel uses.
    with _configured(folder, binary_only=binary_only and not hip, hook=hook):
        return registry.optional("triton.compiler", _EXTRA).compile(source, target=target, options=options)


def _clustering(blocks: int) -> Callable[[Any, dict[str, Any], Any, Any, int], None]:
    """Has Triton rewrite the PTX for clusters of so many blocks; a constant of the kernel keeps its cache apart."""
    rewritten = registry.optional("search_spaces.kernels.cluster", _EXTRA).rewritten

    def change(_backend: Any, stages: dict[str, Any], _options: Any, _language: Any, _capability: int) -> None:
        ptx = stages["ptx"]
        stages["ptx"] = lambda source, metadata: rewritten(ptx(source, metadata), blocks)

    return change


def _identity(cubin: bytes, launch: TritonLaunch) -> str:
    """Hash of the binary and of what it is launched with: equal binaries in another grid or order run differently."""
    scalars = [a.value for a in launch.arguments.values() if isinstance(a, ScalarArgument)]
    return hashlib.sha256(cubin + repr((launch.grid, scalars)).encode()).hexdigest()


def _concise(error: BaseException) -> str:
    """One line: ptxas's first complaint, or the last line of what the compiler said of the innermost function."""
    root = error
    while root.__cause__ is not None:
        root = root.__cause__
    outer, inner = (_lines(e) for e in (error, root))
    said = next((line for line in outer if re.match(r"ptxas .*(error|fatal)", line)), (inner or outer or [""])[-1])
    return f"{type(error).__name__}: {said}"[:300] if said else type(error).__name__


def _lines(error: BaseException) -> list[str]:
    return [line.strip() for line in str(error).splitlines() if line.strip()]


GENERATOR = TritonGenerator()
