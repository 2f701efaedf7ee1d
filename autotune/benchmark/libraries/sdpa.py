"""Attention through torch's scaled_dot_product_attention, with each of its backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.task import Task

OPERATORS = ("attention",)
BACKENDS: Mapping[str, str] = {
    "SDPA cuDNN": "CUDNN_ATTENTION",
    "SDPA FlashAttention": "FLASH_ATTENTION",
    "SDPA efficient": "EFFICIENT_ATTENTION",
}


class Sdpa(Library):
    """cuDNN's, FlashAttention's and xFormers' kernels."""

    summary = "scaled_dot_product_attention with cuDNN, FlashAttention and the memory-efficient kernel"
    kinds = ("cuda",)

    def missing(self) -> str | None:
        """It comes with torch."""
        return None if registry.available("torch") else "torch is not installed"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """Each backend; those that refuse the workload raise when they are tried."""
        if task.workload.operator not in OPERATORS:
            return {}
        torch = registry.optional("torch", "cuda")
        attend, using = torch.nn.functional.scaled_dot_product_attention, torch.nn.attention.sdpa_kernel
        backends = torch.nn.attention.SDPBackend
        q, k, v = inputs
        causal, grouped = bool(task.workload["causal"]), task.workload["H"] != task.workload["G"]

        def through(backend: Any) -> Launch:
            def call() -> object:
                with using(backend):
                    return attend(q, k, v, is_causal=causal, enable_gqa=grouped)

            return call

        return {name: through(getattr(backends, backend)) for name, backend in BACKENDS.items()}


LIBRARY = Sdpa()
