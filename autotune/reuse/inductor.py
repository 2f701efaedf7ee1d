"""An exported lookup table in torch.compile: matrix products take the tuned tile, and none is benchmarked.

with tuned_table("exported/inductor-table.json"):
    torch.compile(model, mode="max-autotune-no-cudagraphs")(x)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from search_spaces import registry
from search_spaces.errors import BadLog

FILE = "inductor-table.json"
TEMPLATE = "triton::mm"
_EXTRA = "cuda"
_MOST_BYTES = 16 * 1024 * 1024
_Word = Annotated[str, msgspec.Meta(max_length=1000)]
Table = dict[_Word, Annotated[list[dict[_Word, int | bool | _Word | None]], msgspec.Meta(max_length=1000)]]


def read_table(path: Path) -> Table:
    """Reads what `autotune export --format inductor` wrote.

    Raises:
        BadLog: It cannot be read as that.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"it is larger than {_MOST_BYTES >> 20} MiB")
        table = msgspec.json.decode(data, type=Table)
        if not all("template_id" in choice for choices in table.values() for choice in choices):
            raise ValueError("a choice names no template")
    except (OSError, msgspec.MsgspecError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadLog(f"{path} is no lookup table of Inductor's ({why})", "export the log again") from error
    return table


@contextmanager
def tuned_table(path: Path | str) -> Iterator[None]:
    """Compiles with the table inside of the block; what is in no table is compiled as ever.

    Raises:
        BadLog: The file cannot be read.
        MissingDependency: This torch has no lookup table.
    """
    table = read_table(Path(path))
    choices = registry.optional("torch._inductor.lookup_table", _EXTRA).LookupTableChoices
    config = registry.optional("torch._inductor.config", _EXTRA)
    virtualized = registry.optional("torch._inductor.virtualized", _EXTRA).V
    with config.patch({"lookup_table.table": table}), virtualized.set_choices_handler(choices()):
        yield


def key_of(device: str, tensors: Mapping[str, tuple[tuple[int, ...], tuple[int, ...], str]], call: str) -> str:
    """Inductor's key for a call on row-major or any other strided inputs: its own text of them.

    Args:
        device: Name of the device as torch gives it.
        tensors: Input -> shape, strides and dtype, in the call's order.
        call: "mm".
    """
    torch = registry.optional("torch", _EXTRA)
    nodes: tuple[Any, ...] = tuple(
        (getattr(torch, dtype), list(shape), list(strides)) for shape, strides, dtype in tensors.values()
    )
    return f"{device}+{nodes}+{call}"
