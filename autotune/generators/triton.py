"""Triton: a schedule is a jitted kernel with constants, compiled by Triton to a cubin with or without a GPU."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from autotune.generators.base import Artifact, BoundLaunch, BuildError, Generator, Kernel, Resources
from autotune.kernel_usage import kernel_usage
from search_spaces import registry
from search_spaces.errors import AutotuneError
from search_spaces.operator import TensorSpec
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
_TYPES: Mapping[str, str] = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "int8": "i8",
    "int32": "i32",
    "float8_e4m3fn": "fp8e4nv",
}
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
        """Compiles, or finds in `folder` what a schedule with the same binary left there."""
        launch = _sketch(task, schedule).launch(task, schedule)
        try:
            compiled = _compile(task, _source(task, schedule, launch), launch, folder)
        except AutotuneError:
            raise
        except Exception as error:
            raise BuildError(_concise(error)) from error
        metadata = compiled.metadata
        limit = task.hardware.limits.shared_per_block
        if metadata.shared > limit:
            raise BuildError(
                f"needs {metadata.shared} bytes of shared memory; a block has {limit} on {task.target.arch}"
            )
        columns = getattr(metadata, "tmem_size", None) or 0
        if columns > _TENSOR_MEMORY:
            raise BuildError(f"needs {columns} columns of tensor memory; there are {_TENSOR_MEMORY}")
        binary = next(Path(p) for p in compiled.metadata_group.values() if p.endswith(_BINARIES))
        registers, stack = kernel_usage(binary)
        return Artifact(
            path=str(binary.parent),
            sha256=_identity(compiled.kernel, launch),
            resources=Resources(
                registers=registers,
                shared_bytes=metadata.shared,
                spill_bytes=stack,
                threads=metadata.num_warps * metadata.target.warp_size,
            ),
        )

    def load(self, task: Task, schedule: Schedule, artifact: Artifact, folder: Path) -> Kernel:
        """Loads the cubin itself, so that nothing can be compiled again in the worker.

        A device of another arch than the target's gets the target's PTX, which its driver compiles.
        """
        launch = _sketch(task, schedule).launch(task, schedule)
        if _device_capability() != _capability(task):
            compiled = _compile(task, _source(task, schedule, launch), launch, folder / "ptx", binary_only=False)
            with _configured(folder, binary_only=True):
                return TritonKernel(task, launch, compiled, compiled.asm["ptx"].encode() + b"\0")
        files = {path.name: str(path) for path in Path(artifact.path).iterdir() if path.suffix in (".json", ".cubin")}
        group = {name: path for name, path in files.items() if not name.startswith("__grp__")}
        with _configured(folder, binary_only=True):
            compiled = registry.optional("triton.compiler", _EXTRA).CompiledKernel(
                _source(task, schedule, launch), group, Path(artifact.path).name
            )
            return TritonKernel(task, launch, compiled, compiled.kernel)

    def versions(self) -> dict[str, str]:
        """Triton's; it brings its own ptxas."""
        return {"triton": importlib.metadata.version("triton")}


class TritonKernel(Kernel):
    """A cubin in the device's memory, with the launcher that Triton compiles for its parameters."""

    def __init__(self, task: Task, launch: TritonLaunch, compiled: Any, binary: bytes) -> None:
        self._tensors = task.operator.tensors(task.workload)
        self._launch = launch
        self._driver = registry.optional("triton.runtime.driver", _EXTRA).driver.active
        self._descriptors = compiled.metadata.tensordesc_meta or []
        warps, _, shared = compiled.packed_metadata
        self._packed = (warps, launch.cluster, shared)
        device = self._driver.get_current_device()
        loaded = self._driver.utils.load_binary(compiled.name, binary, compiled.metadata.shared, device)
        self._module, self._function, _, _, most_threads = loaded
        threads = compiled.metadata.num_warps * compiled.metadata.target.warp_size
        if threads > most_threads:
            raise RuntimeError(f"the device takes {most_threads} threads of this kernel, it has {threads}")
        # The launcher is made for parameters as the kernel receives them: Triton's own way around it would encode
        # every descriptor again at every launch.
        types = _expanded(launch.arguments, self._tensors)
        self._launcher = self._driver.launcher_cls(
            SimpleNamespace(constants={}, signature=dict(enumerate(types))),
            compiled.metadata._replace(tensordesc_meta=None),
        )

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        """Takes addresses and encodes descriptors once; a launch then only asks for the current stream."""
        arrays = {t.name: a for t, a in zip(self._tensors, (*inputs, *outputs), strict=True)}
        spaces = self._workspaces()
        values = self._values({**arrays, **spaces})
        launcher, function, packed = self._launcher, self._function, self._packed
        stream_of, device = self._driver.get_current_stream, self._driver.get_current_device()
        x, y, z = self._launch.grid
        # The launcher counts clusters.
        x //= self._launch.cluster

        # The kernel knows only the arrays' addresses, so that the launch must keep them alive.
        def enqueue(_arrays: object = (arrays, spaces)) -> None:
            launcher(x, y, z, stream_of(device), function, packed, None, None, None, *values)

        return enqueue

    def _workspaces(self) -> dict[str, Any]:
        """Zeroed memory for each workspace, by parameter; no tensor has such a name, as those are capitals."""
        torch = registry.optional("torch", _EXTRA)
        return {
            name: torch.zeros(argument.words, dtype=getattr(torch, argument.dtype), device="cuda")
            for name, argument in self._launch.arguments.items()
            if isinstance(argument, WorkspaceArgument)
        }

    def _values(self, arrays: Mapping[str, Any]) -> list[object]:
        """What the launcher takes for each kernel parameter, in the order of `_expanded`."""
        encode = registry.optional("triton.backends.nvidia.driver", _EXTRA).make_tensordesc_arg
        describe = registry.optional("triton.tools.tensor_descriptor", _EXTRA).TensorDescriptor
        encodings = iter(self._descriptors)
        values: list[object] = []
        for name, argument in self._launch.arguments.items():
            if isinstance(argument, TensorArgument):
                values.append(arrays[argument.tensor].data_ptr())
            elif isinstance(argument, WorkspaceArgument):
                values.append(arrays[name].data_ptr())
            elif isinstance(argument, DescriptorArgument):
                shape = list(argument.shape)
                strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
                described = describe(arrays[argument.tensor], shape, strides, list(argument.block))
                values += encode(described, next(encodings))
            elif not argument.folded:
                values.append(argument.value)
        return values


def _sketch(task: Task, schedule: Schedule) -> TritonSketch:
    sketch = task.sketch_of(schedule)
    assert isinstance(sketch, TritonSketch), f"{sketch.name} is no Triton sketch"
    return sketch


def _kernel(sketch: TritonSketch) -> Any:
    """The jitted function, from the sketch's own file where it names no module."""
    module, _, function = sketch.kernel.partition(":")
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
    kernel = _kernel(_sketch(task, schedule))
    dtypes = {t.name: _TYPES[t.dtype] for t in task.operator.tensors(task.workload)}
    given = {**launch.arguments, **launch.constants}
    if list(given) != kernel.arg_names:
        raise TypeError(f"{schedule.sketch} gives {list(given)} for the parameters {kernel.arg_names}")
    signature = {name: _type(argument, dtypes) for name, argument in launch.arguments.items()}
    made = registry.optional("triton.compiler", _EXTRA).ASTSource
    if kernel.is_gluon():
        made = registry.optional(_GLUON, _EXTRA).GluonASTSource
        descriptors = {n: a for n, a in launch.arguments.items() if isinstance(a, DescriptorArgument)}
        signature.update({name: _with_layout(signature[name], argument) for name, argument in descriptors.items()})
    signature.update(dict.fromkeys(launch.constants, "constexpr"))
    constants = {**{name: 1 for name, argument in launch.arguments.items() if _folded(argument)}, **launch.constants}
    aligned = {(i,): _ALIGNED for i, argument in enumerate(launch.arguments.values()) if _divisible(argument)}
    return made(kernel, signature, constants, aligned)


def _folded(argument: Argument) -> bool:
    return isinstance(argument, ScalarArgument) and argument.folded


def _divisible(argument: Argument) -> bool:
    """Whether Triton may know that it is a multiple of 16: an address or a number."""
    if isinstance(argument, ScalarArgument):
        return argument.specialised and argument.value % 16 == 0
    return isinstance(argument, TensorArgument | WorkspaceArgument)


def _type(argument: Argument, dtypes: Mapping[str, str]) -> str:
    if isinstance(argument, ScalarArgument):
        return "constexpr" if argument.folded else "i32"
    if isinstance(argument, WorkspaceArgument):
        return f"*{_TYPES[argument.dtype]}"
    dtype = dtypes[argument.tensor]
    if isinstance(argument, TensorArgument):
        return f"*{dtype}"
    return f"tensordesc<{dtype}[{','.join(map(str, argument.block))}]>"


def _with_layout(described: str, argument: DescriptorArgument) -> str:
    """A descriptor's type for Gluon, which wants to know how its block lies in shared memory."""
    language = registry.optional("triton.experimental.gluon.language", _EXTRA)
    dtype = language.dtype(described.removeprefix("tensordesc<").partition("[")[0])
    layout = language.NVMMASharedLayout.get_default_for(list(argument.block), dtype)
    return f"{described[:-1]},{layout!r}>"


def _expanded(arguments: Mapping[str, Argument], tensors: Sequence[TensorSpec]) -> list[str]:
    """The launcher's parameter types: a descriptor is followed by its shape and its strides."""
    dtypes = {t.name: _TYPES[t.dtype] for t in tensors}
    types: list[str] = []
    for argument in arguments.values():
        if isinstance(argument, DescriptorArgument):
            rank = len(argument.shape)
            types += ["nvTmaDesc", *["i32"] * rank, *["i64"] * rank]
        elif not _folded(argument):
            types.append(_type(argument, dtypes))
    return types


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
