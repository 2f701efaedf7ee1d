"""torch on a CPU: oneDNN's or MKL's matrix products, and its own vectorised kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch
from search_spaces.task import Task


class TorchCpu(Library):
    """Any operator that names torch calls, over the memory of the numpy arrays."""

    summary = "torch on a CPU: oneDNN, MKL and its own kernels"
    kinds = ("llvm",)

    def missing(self) -> str | None:
        """It is torch."""
        return None if registry.available("torch") else "torch is not installed"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """What the operator names."""
        torch = registry.optional("torch", "cuda")
        seen, written = ([torch.from_numpy(a) for a in arrays] for arrays in (inputs, outputs))
        found = task.operator.torch_library(task.workload, torch, seen, written)
        return {name if name.startswith("torch") else f"torch {name}": call for name, call in found.items()}


LIBRARY = TorchCpu()
