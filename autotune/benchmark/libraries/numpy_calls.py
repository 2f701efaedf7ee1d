"""numpy, with the BLAS that it was built with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autotune.benchmark.libraries.base import Library
from search_spaces.operator import Launch
from search_spaces.task import Task


class NumpyCalls(Library):
    """Any operator that names numpy calls."""

    summary = "numpy and its BLAS"
    kinds = ("llvm",)

    def missing(self) -> str | None:
        """It is always there."""
        return None

    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """What the operator names."""
        return task.operator.numpy_library(task.workload, np, inputs, outputs)


LIBRARY = NumpyCalls()
