"""torch's calls as each operator names them for its user: own kernels, cuBLASLt's epilogues, attention's backends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries import cublas, sdpa
from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.task import Task


class TorchEager(Library):
    """Any operator that names torch calls, but for the calls that another file times in more ways."""

    summary = "torch's calls as the operators name them"
    kinds = ("cuda",)

    def missing(self) -> str | None:
        """It is torch."""
        return None if registry.available("torch") else "torch is not installed"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """What the operator names."""
        if task.workload.operator in sdpa.OPERATORS:
            return {}
        torch = registry.optional("torch", "cuda")
        named = task.operator.torch_library(task.workload, torch, inputs, outputs)
        return {name: call for name, call in named.items() if name != cublas.NAME}


LIBRARY = TorchEager()
