"""torch.compile with max-autotune: Inductor's own search over Triton templates and fusions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch, Workload
from search_spaces.operators.layer_norm import EPS as LAYER_EPS
from search_spaces.operators.rms_norm import EPS as RMS_EPS
from search_spaces.task import Task

# CUDA graphs are left to the stopwatch, which uses them for every contestant alike.
MODE = "max-autotune-no-cudagraphs"
Expression = Callable[..., Any]


def expressions(task: Task, torch: Any) -> Mapping[str, Expression]:
    """Operator -> the expression that a user would compile."""
    functional, workload = torch.nn.functional, task.workload
    return {
        "linear": lambda a, b, *rest: _linear(torch, workload, a, b, *rest),
        "gated_linear": lambda a, b, up: (
            _activated(functional, workload["activation"], functional.linear(a, b)) * functional.linear(a, up)
        ),
        "matmul": lambda a, b: torch.matmul(a, b.t() if workload["trans_b"] else b),
        "softmax": lambda x: torch.softmax(x, dim=-1),
        "rms_norm": lambda x, w, *r: _rms_norm(torch, workload, x, w, *r),
        "layer_norm": lambda x, w, b: functional.layer_norm(x, (workload["N"],), w, b, LAYER_EPS),
        "reduce": lambda x: torch.amax(x, dim=-1) if workload["maximum"] else torch.sum(x, dim=-1),
        "transpose": lambda x: x.transpose(1, 2).contiguous(),
        "elementwise": lambda x, u, v: functional.gelu(x, approximate="tanh") * u + v,
        "attention": lambda q, k, v: functional.scaled_dot_product_attention(
            q, k, v, is_causal=bool(workload["causal"]), enable_gqa=workload["H"] != workload["G"]
        ),
    }


def _rms_norm(torch: Any, workload: Workload, x: Any, w: Any, *residual: Any) -> Any:
    total = x + residual[0] if residual else x
    normed = torch.nn.functional.rms_norm(total, (workload["N"],), w, RMS_EPS)
    return (normed, total) if residual else normed


def _linear(torch: Any, workload: Workload, a: Any, b: Any, *rest: Any) -> Any:
    bias = rest[0] if workload["bias"] else None
    made = _activated(torch.nn.functional, workload["activation"], torch.nn.functional.linear(a, b, bias))
    return made + rest[-1] if workload["residual"] else made


def _activated(functional: Any, activation: int, value: Any) -> Any:
    """The activation by its number in `products.ACTIVATIONS`."""
    if activation == 1:
        return functional.relu(value)
    if activation == 2:
        return functional.gelu(value, approximate="tanh")
    return functional.silu(value) if activation == 3 else value


class TorchCompile(Library):
    """The operators above, and of any other what it names as torch calls."""

    summary = "torch.compile, max-autotune"
    kinds = ("cuda", "llvm")
    slow = True

    def missing(self) -> str | None:
        """It is torch's."""
        return None if registry.available("torch") else "torch is not installed"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """The compiled expression, compiled anew for the shape."""
        torch = registry.optional("torch", "cuda")
        if task.target.kind == "llvm":
            inputs, outputs = ([torch.from_numpy(a) for a in arrays] for arrays in (inputs, outputs))
        torch._dynamo.reset()
        known = expressions(task, torch).get(task.workload.operator)
        if known is None:
            named = task.operator.torch_library(task.workload, torch, inputs, outputs)
            return {f"compiled {name}": torch.compile(call, mode=MODE, dynamic=False) for name, call in named.items()}
        compiled = torch.compile(known, mode=MODE, dynamic=False)

        def call() -> object:
            with torch.no_grad():
                return compiled(*inputs)

        return {"torch.compile": call}


LIBRARY = TorchCompile()
