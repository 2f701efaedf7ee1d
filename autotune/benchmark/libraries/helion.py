"""Helion: kernels in a language above Triton's, tuned by its own search at its quick effort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from autotune.benchmark.libraries.base import Library
from search_spaces import registry
from search_spaces.operator import Launch, Workload
from search_spaces.task import Task

KERNELS = "autotune.benchmark.helion_kernels"
NAME = "Helion, quick effort"


class Helion(Library):
    """Matrix products, softmax, and attention without a mask and groups, as its examples have them."""

    summary = "Helion at its quick effort"
    kinds = ("cuda",)
    slow = True

    def missing(self) -> str | None:
        """It is a package of its own."""
        return None if registry.available("helion") else "not installed: pip install 'kernel-autotune[rivals]'"

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """The kernel, which Helion tunes at its first call."""
        if not written(task.workload):
            return {}
        kernel = getattr(registry.optional(KERNELS, "rivals"), task.workload.operator)
        kernel.settings.autotune_effort = "quick"
        # It may compile in processes of its own, which end by themselves. One that has the device would outlive a tuner
        # that is killed.
        kernel.settings.autotune_benchmark_subprocess = False
        if task.workload.operator != "attention":
            return {NAME: lambda: kernel(*inputs)}
        heads = [i.flatten(0, 1) for i in inputs]
        return {NAME: lambda: kernel(*heads).view(outputs[0].shape)}


def written(workload: Workload) -> bool:
    """Whether there is a kernel for the workload."""
    if workload.operator == "matmul":
        return not workload["trans_b"]
    if workload.operator == "attention":
        return not workload["causal"] and workload["H"] == workload["G"]
    return workload.operator == "softmax"


LIBRARY = Helion()
