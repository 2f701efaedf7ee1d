"""What TVM 0.25, 0.26 and 0.27 call by different names, so that one text serves all three."""

from __future__ import annotations

from typing import Any

from search_spaces import registry

_EXTRA = "tvm"


def block_realize_class() -> Any:
    """The class of a block's place within its loops."""
    tvm = registry.optional("tvm", _EXTRA)
    return getattr(tvm.s_tir, "SBlockRealize", None) or tvm.tirx.SBlockRealize


def call_class() -> Any:
    """The class of a call in a TIR expression."""
    ir = registry.optional("tvm.ir", _EXTRA)
    return getattr(ir, "Call", None) or registry.optional("tvm.tirx", _EXTRA).Call


def arguments_of(function: Any) -> list[Any]:
    """The buffers that a function takes, in order."""
    by_name = getattr(function, "buffer_map", None) or {}
    return [by_name.get(p, p) for p in function.params]


def buffer_of(region: Any) -> Any:
    """The buffer that a block reads or writes a region of."""
    return region.source if hasattr(region, "source") else region.buffer


def dtype_of(expression: Any) -> str:
    """The dtype of a TIR expression, with its lanes."""
    return str(expression.ty.dtype if hasattr(expression, "ty") else expression.dtype)


def tensor_type(shape: tuple[int, ...], dtype: str) -> Any:
    """What annotates a Relax variable that is a tensor."""
    relax = registry.optional("tvm.relax", _EXTRA)
    return getattr(relax, "TensorStructInfo", relax.TensorType)(shape, dtype)


def walk(tree: Any, kinds: tuple[Any, ...], visit: Any) -> None:
    """Calls `visit` with every node of the given classes in a TIR statement or expression."""
    found = getattr(registry.optional("tvm_ffi", _EXTRA), "structural_walk", None)
    if found is not None:
        found(tree, (kinds, visit))
        return
    functor = registry.optional("tvm.tirx.stmt_functor", _EXTRA)
    functor.post_order_visit(tree, lambda node: visit(node) if isinstance(node, kinds) else None)
