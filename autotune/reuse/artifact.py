"""What an exported artifact says about itself: `artifact/1`, the JSON beside a cubin or a shared object."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

import msgspec

from search_spaces.errors import BadLog

SCHEMA = "artifact/1"
FILE = "launch.json"
_MOST_BYTES = 1024 * 1024
_MOST_CODE = 256 * 1024 * 1024
_Word = Annotated[str, msgspec.Meta(max_length=300)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
_Three = Annotated[tuple[_Count, ...], msgspec.Meta(min_length=3, max_length=3)]


class Pointer(msgspec.Struct, frozen=True, tag_field="kind", tag="pointer"):
    """The address of a tensor; 8 bytes."""

    tensor: _Word


class Null(msgspec.Struct, frozen=True, tag_field="kind", tag="null"):
    """A pointer that the kernel does not follow; 8 bytes."""


class Integer(msgspec.Struct, frozen=True, tag_field="kind", tag="integer"):
    """A number of so many bytes."""

    value: int
    bytes: Annotated[int, msgspec.Meta(ge=1, le=8)]


class TensorMap(msgspec.Struct, frozen=True, tag_field="kind", tag="tensor_map"):
    """A CUtensorMap of 128 bytes, for cuTensorMapEncodeTiled: no interleaving, L2 promotion of 128 bytes, zero fill.

    Attributes:
        tensor: The tensor that it describes.
        data_type: Value of CUtensorMapDataType.
        itemsize: Bytes of an element.
        shape: Extents, outermost first; the tensor is dense and row-major.
        box: What one copy moves, outermost first.
        swizzle: Value of CUtensorMapSwizzle.
    """

    tensor: _Word
    data_type: _Count
    itemsize: _Count
    shape: tuple[_Count, ...]
    box: tuple[_Count, ...]
    swizzle: _Count


Parameter = Pointer | Null | Integer | TensorMap


class Argument(msgspec.Struct, frozen=True):
    """A tensor of the operator: dense and row-major; inputs come first."""

    name: _Word
    dtype: _Word
    shape: tuple[_Count, ...]
    output: bool


class Artifact(msgspec.Struct, frozen=True):
    """A compiled kernel.

    Attributes:
        schema: `artifact/1`.
        kind: "cubin", to be launched with the fields below, or "shared-object", a function of the TVM FFI's C calling
            convention that takes `tensors` as DLTensor pointers.
        file: Beside this one.
        sha256: Of that file. Check it before the file is loaded.
        symbol: The kernel or function.
        target: What it was compiled for.
        tensors: The operator's tensors, in order.
        parameters: The kernel's parameters, in order.
        grid: Blocks in x, y and z.
        block: Threads in x, y and z.
        cluster: Blocks of a cluster, in x.
        shared_bytes: Dynamic shared memory of a block; above 48 KiB the function's attribute must be raised first.
    """

    schema: str
    kind: _Word
    file: _Word
    sha256: _Word
    symbol: _Word
    target: _Word
    tensors: Annotated[tuple[Argument, ...], msgspec.Meta(max_length=64)]
    parameters: Annotated[tuple[Parameter, ...], msgspec.Meta(max_length=256)] = ()
    grid: _Three = (1, 1, 1)
    block: _Three = (1, 1, 1)
    cluster: _Count = 1
    shared_bytes: _Count = 0


def read_artifact(folder: Path) -> tuple[Artifact, bytes]:
    """What an artifact says about itself, and its code, whose hash has been compared. Loads nothing.

    Raises:
        BadLog: The folder holds no artifact, or the code is not the one that was exported.
    """
    try:
        with (folder / FILE).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"{FILE} is larger than {_MOST_BYTES >> 20} MiB")
        artifact = msgspec.json.decode(data, type=Artifact)
        if artifact.schema != SCHEMA:
            raise ValueError(f"its schema is {artifact.schema[:40]!r}, not {SCHEMA}")
        if Path(artifact.file).name != artifact.file or artifact.file in (".", ".."):
            raise ValueError("its file is not beside it")
        with (folder / artifact.file).open("rb") as file:
            code = file.read(_MOST_CODE)
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadLog(f"{folder} holds no artifact ({why})", "export the log again") from error
    if hashlib.sha256(code).hexdigest() != artifact.sha256:
        raise BadLog(f"{folder / artifact.file} is not the file that was exported", "export the log again")
    return artifact, code
