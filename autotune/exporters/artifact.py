"""Compiled kernels: a cubin with launch data, or a shared object; neither a compiler nor this project runs them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import array_api_compat
import msgspec
import numpy as np

from autotune.builders import find_generator
from autotune.exporters.base import Exporter, ExportFault, slug
from autotune.generators.base import Artifact as Built
from autotune.generators.base import BuildError
from autotune.inputs import filled
from autotune.recall import Winner
from autotune.reuse.agreement import agrees
from autotune.reuse.artifact import (
    FILE,
    SCHEMA,
    Argument,
    Artifact,
    Integer,
    Null,
    Parameter,
    Pointer,
    TensorMap,
    read_artifact,
)
from autotune.scratch import scratch_folder
from search_spaces import registry
from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.triton.base import (
    DescriptorArgument,
    ScalarArgument,
    TensorArgument,
    TritonSketch,
    WorkspaceArgument,
)

_EXTRA = "cuda"
_PARAMETER = re.compile(r"EIATTR_KPARAM_INFO\s.*?Ordinal : 0x([0-9a-f]+)\s.*?Size\s+: 0x([0-9a-f]+)", re.DOTALL)
# Triton's kernels end with two pointers to scratch memory.
_SCRATCH = ("global_scratch_size", "profile_scratch_size")
_NOTES = (
    "A cubin runs on devices of its arch alone; what its parameters are was compared with the binary itself,"
    " and 'experiments/examples/run_cubin.py' launches one through the CUDA driver.",
    "A shared object needs libtvm_ffi and is called as 'experiments/examples/run_shared_object.py' does.",
)


class ArtifactExporter(Exporter):
    """One folder a winner."""

    summary = "compiled kernels with launch data, or a shared object"

    def missing(self) -> str | None:
        """Each generator tells at its first build."""
        return None

    def why_not(self, winner: Winner) -> str | None:
        """TVM launches its CUDA kernels from host code that needs the whole of TVM."""
        generator = winner.task.sketch_of(winner.schedule).generator
        missing = find_generator(generator).missing()
        if missing is not None:
            return missing
        sketch = winner.task.sketch_of(winner.schedule)
        if isinstance(sketch, TritonSketch) and len(sketch.launches(winner.task, winner.schedule)) > 1:
            return "it is several kernels one after the other, and launch data is one kernel's"
        if isinstance(sketch, TritonSketch) and _has_workspace(sketch, winner):
            return "it needs memory of its own beside the tensors, which launch data cannot say"
        if generator == "tvm" and winner.task.target.kind == "cuda":
            return "a CUDA kernel of TVM is launched by TVM alone: export it to tvm"
        return None

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """Builds each again."""
        with scratch_folder() as scratch:
            for winner in winners:
                place = folder / _place(winner)
                place.mkdir(parents=True)
                try:
                    built = find_generator(winner.task.sketch_of(winner.schedule).generator).build(
                        winner.task, winner.schedule, scratch
                    )
                except BuildError as error:
                    raise ExportFault(f"{winner} does not build: {error}") from error
                described = _cubin if winner.task.target.kind == "cuda" else _shared_object
                made = described(winner, built, place)
                (place / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Runs a shared object on random inputs; compares a cubin's own list of parameters with the launch data."""
        for winner in winners:
            place = folder / _place(winner)
            artifact, _ = read_artifact(place)
            if artifact.kind == "cubin":
                _compare_parameters(winner, artifact, place / artifact.file)
            else:
                _run(winner, place / artifact.file)
        kinds = {winner.task.target.kind for winner in winners}
        return tuple(note for note, kind in zip(_NOTES, ("cuda", "llvm"), strict=True) if kind in kinds)


def _has_workspace(sketch: TritonSketch, winner: Winner) -> bool:
    arguments = sketch.launch(winner.task, winner.schedule).arguments.values()
    return any(isinstance(argument, WorkspaceArgument) for argument in arguments)


def _place(winner: Winner) -> Path:
    entry = winner.entry
    return Path(slug(entry.device.name), slug(f"{entry.task.workload} {entry.task.target}"))


def _described(winner: Winner, **fields: Any) -> Artifact:
    tensors = winner.task.operator.tensors(winner.task.workload)
    arguments = tuple(Argument(t.name, t.dtype, t.shape, t.output) for t in tensors)
    return Artifact(schema=SCHEMA, target=str(winner.task.target), tensors=arguments, **fields)


def _copied(source: Path, target: Path) -> str:
    shutil.copyfile(source, target)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def _shared_object(winner: Winner, built: Built, place: Path) -> Artifact:
    sha = _copied(Path(built.path), place / "kernel.so")
    return _described(winner, kind="shared-object", file="kernel.so", sha256=sha, symbol="__tvm_ffi_main")


def _cubin(winner: Winner, built: Built, place: Path) -> Artifact:
    launch = cast(TritonSketch, winner.task.sketch_of(winner.schedule)).launch(winner.task, winner.schedule)
    cubin = next(Path(built.path).glob("*.cubin"))
    metadata = json.loads(cubin.with_suffix(".json").read_text())
    if any(metadata.get(name) for name in _SCRATCH):
        raise ExportFault(f"{winner} needs scratch memory that only Triton's launcher gives")
    sha = _copied(cubin, place / "kernel.cubin")
    return _described(
        winner,
        kind="cubin",
        file="kernel.cubin",
        sha256=sha,
        symbol=metadata["name"],
        parameters=tuple(_parameters(winner, metadata)),
        grid=launch.grid,
        block=(metadata["num_warps"] * metadata["warp_size"], 1, 1),
        cluster=launch.cluster,
        shared_bytes=metadata["shared"],
    )


def _parameters(winner: Winner, metadata: Mapping[str, Any]) -> Iterator[Parameter]:
    """The kernel's parameters as its binary has them: a descriptor is followed by its shape and its strides."""
    launch = cast(TritonSketch, winner.task.sketch_of(winner.schedule)).launch(winner.task, winner.schedule)
    dtypes = {t.name: t.dtype for t in winner.task.operator.tensors(winner.task.workload)}
    encodings = iter(metadata["tensordesc_meta"])
    for argument in launch.arguments.values():
        if isinstance(argument, TensorArgument):
            yield Pointer(argument.tensor)
        elif isinstance(argument, ScalarArgument):
            if not argument.folded:
                yield Integer(argument.value, 4)
        elif isinstance(argument, DescriptorArgument):
            yield _tensor_map(argument, next(encodings), ITEMSIZE[dtypes[argument.tensor]])
            yield from (Integer(extent, 4) for extent in argument.shape)
            strides = [1]
            for extent in reversed(argument.shape[1:]):
                strides.insert(0, strides[0] * extent)
            yield from (Integer(stride, 8) for stride in strides)
    yield from (Null() for name in _SCRATCH if name in metadata)


def _tensor_map(argument: DescriptorArgument, encoding: Mapping[str, Any], itemsize: int) -> TensorMap:
    kinds = registry.optional("triton.backends.nvidia.driver", _EXTRA).TMA_DTYPE_DEVICE_TO_HOST
    return TensorMap(
        tensor=argument.tensor,
        data_type=int(kinds[encoding["elem_type"]]),
        itemsize=itemsize,
        shape=argument.shape,
        box=tuple(encoding["block_size"]),
        swizzle=encoding["swizzle"],
    )


def _compare_parameters(winner: Winner, artifact: Artifact, cubin: Path) -> None:
    """Holds the launch data against what cuobjdump reads in the binary.

    Raises:
        ExportFault: Number or sizes of the parameters differ.
    """
    tool = registry.optional("triton.knobs", _EXTRA).nvidia.cuobjdump.path
    told = subprocess.run([tool, "-elf", str(cubin)], capture_output=True, text=True, check=False).stdout
    sizes = {int(ordinal, 16): int(size, 16) for ordinal, size in _PARAMETER.findall(told)}
    described = dict(enumerate(map(_size, artifact.parameters)))
    if sizes != described:
        raise ExportFault(f"{winner}: the binary takes parameters of {_listed(sizes)} bytes, not {_listed(described)}")


def _listed(sizes: Mapping[int, int]) -> str:
    return ", ".join(str(size) for _, size in sorted(sizes.items())) or "no"


def _size(parameter: Parameter) -> int:
    if isinstance(parameter, Integer):
        return parameter.bytes
    return 128 if isinstance(parameter, TensorMap) else 8


def _run(winner: Winner, library: Path) -> None:
    """Loads a shared object with TVM's runtime and compares what it computes with the operator's reference.

    Raises:
        ExportFault: It computes something else.
    """
    runtime = registry.optional("tvm.runtime", "tvm")
    task = winner.task
    tensors = task.operator.tensors(task.workload)
    rng = np.random.default_rng(0)
    inputs = [filled(np, rng.standard_normal(t.shape), t).astype(t.dtype) for t in tensors if not t.output]
    outputs = [runtime.empty(t.shape, t.dtype) for t in tensors if t.output]
    runtime.load_module(str(library))["main"](*map(runtime.tensor, inputs), *outputs)
    if not agrees(task, array_api_compat.array_namespace(inputs[0]), inputs, [o.numpy() for o in outputs]):
        raise ExportFault(f"{winner}: the shared object computes wrong values")


EXPORTER = ArtifactExporter()
