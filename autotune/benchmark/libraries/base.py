"""What a library is to a benchmark: the calls that a user would make instead of a tuned kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Launch
from search_spaces.task import Task


class Library(ABC):
    """One library: a file of this folder with an instance named LIBRARY.

    Class attributes:
        summary: One line.
        kinds: Target kinds on which it computes.
        slow: Takes minutes to be ready; takes part only where it is asked for.
    """

    summary: str
    kinds: tuple[str, ...]
    slow: bool = False

    @abstractmethod
    def missing(self) -> str | None:
        """Why it cannot be used on this machine; None where it can. Imports nothing heavy."""

    @abstractmethod
    def calls(self, task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Mapping[str, Launch]:
        """Calls for the task by the name that tables show, each at its best; none where it lacks the operator.

        A call returns its first output, all of them in a tuple, or None; what it does not return it has written into
        `outputs`. It may raise on a workload that it cannot do. Arrays are torch tensors on a GPU, numpy's on a CPU.
        """
