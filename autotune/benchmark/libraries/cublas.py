"""Matrix products by cuBLAS and by cuBLASLt, which torch puts behind the same call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.task import Task

# What operators call a torch product that either interface may carry out.
NAME = "cuBLAS"


class Cublas(Library):
    """The vendor's matrix product by both of its interfaces, whose heuristics differ."""

    summary = "cuBLAS and cuBLASLt, with out="
    kinds = ("cuda",)

    def missing(self) -> str | None:
        """It comes with torch."""
        return None if registry.available("torch") else "torch is not installed"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """The operator's cuBLAS call through each interface."""
        torch = registry.optional("torch", "cuda")
        product = task.operator.torch_library(task.workload, torch, inputs, outputs).get(NAME)
        if product is None:
            return {}
        choose = torch.backends.cuda.preferred_blas_library

        def through(interface: str) -> Launch:
            def call() -> object:
                choose(interface)
                return product()

            return call

        return {NAME: through("cublas"), f"{NAME} through cuBLASLt": through("cublaslt")}


LIBRARY = Cublas()
