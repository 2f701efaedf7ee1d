"""Triton's binaries in the device's memory, launched through Triton's own driver with parameters encoded once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from autotune.generators.base import BoundLaunch, Kernel
from search_spaces import registry
from search_spaces.operator import TensorSpec
from search_spaces.sketches.triton.base import (
    Argument,
    Constant,
    DescriptorArgument,
    ScalarArgument,
    TensorArgument,
    TritonLaunch,
    TypeConstant,
    WorkspaceArgument,
)

_EXTRA = "cuda"
TYPES: Mapping[str, str] = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "int8": "i8",
    "int32": "i32",
    "float8_e4m3fn": "fp8e4nv",
}


class Step:
    """A cubin in the device's memory, with the launcher that Triton compiles for its parameters."""

    def __init__(self, tensors: Sequence[TensorSpec], launch: TritonLaunch, compiled: Any, binary: bytes) -> None:
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
        types = _expanded(launch.arguments, tensors)
        self._launcher = self._driver.launcher_cls(
            SimpleNamespace(constants={}, signature=dict(enumerate(types))),
            compiled.metadata._replace(tensordesc_meta=None),
        )

    def bind(self, arrays: Mapping[str, Any], shared: dict[str, Any]) -> BoundLaunch:
        """The launch on these tensors; workspaces that have a name are in `shared`, or come into it."""
        spaces = self._workspaces(shared)
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

    def _workspaces(self, shared: dict[str, Any]) -> dict[str, Any]:
        """Zeroed memory for each workspace, by parameter; no tensor has such a name, as those are capitals."""
        torch = registry.optional("torch", _EXTRA)
        found = {}
        for name, argument in self._launch.arguments.items():
            if isinstance(argument, WorkspaceArgument):
                found[name] = shared.get(argument.name)
                if found[name] is None:
                    dtype = getattr(torch, argument.dtype)
                    found[name] = torch.zeros(argument.elements, dtype=dtype, device="cuda")
                if argument.name:
                    shared[argument.name] = found[name]
        return found

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


class TritonKernel(Kernel):
    """The kernels of a schedule in the device's memory, launched one after the other."""

    def __init__(self, tensors: Sequence[TensorSpec], steps: Sequence[Step]) -> None:
        self._tensors, self._steps = tensors, steps

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        """Takes addresses and encodes descriptors once; a launch then only asks for the current stream."""
        arrays = {t.name: a for t, a in zip(self._tensors, (*inputs, *outputs), strict=True)}
        shared: dict[str, Any] = {}
        first, *others = [step.bind(arrays, shared) for step in self._steps]
        if not others:
            return first

        def enqueue() -> None:
            first()
            for launch in others:
                launch()

        return enqueue


def folded(argument: Argument) -> bool:
    """Whether it is a constant of the binary and not passed."""
    return isinstance(argument, ScalarArgument) and argument.folded


def constant(value: Constant) -> object:
    """The value that Triton takes for a constant."""
    if isinstance(value, TypeConstant):
        return getattr(registry.optional("triton.language", _EXTRA), value.dtype)
    return value


def type_of(argument: Argument, dtypes: Mapping[str, str]) -> str:
    """Triton's name of a parameter's type, `dtypes` those of the tensors in Triton's words."""
    if isinstance(argument, ScalarArgument):
        return "constexpr" if argument.folded else "i32"
    if isinstance(argument, WorkspaceArgument):
        return f"*{TYPES[argument.dtype]}"
    dtype = dtypes[argument.tensor]
    if isinstance(argument, TensorArgument):
        return f"*{dtype}"
    return f"tensordesc<{dtype}[{','.join(map(str, argument.block))}]>"


def _expanded(arguments: Mapping[str, Argument], tensors: Sequence[TensorSpec]) -> list[str]:
    """The launcher's parameter types: a descriptor is followed by its shape and its strides."""
    dtypes = {t.name: TYPES[t.dtype] for t in tensors}
    types: list[str] = []
    for argument in arguments.values():
        if isinstance(argument, DescriptorArgument):
            rank = len(argument.shape)
            types += ["nvTmaDesc", *["i32"] * rank, *["i64"] * rank]
        elif not folded(argument):
            types.append(type_of(argument, dtypes))
    return types
