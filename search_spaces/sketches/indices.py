"""What the Triton sketches of argmax add to those of other reductions: indices beside the values."""

from __future__ import annotations

from search_spaces.sketches.reductions import ReducedPieces, ReducedRows, eviction
from search_spaces.sketches.triton.base import Argument, WorkspaceArgument
from search_spaces.space import Schedule
from search_spaces.task import Task


class IndexedRows(ReducedRows):
    """Whole rows, of which one index each is written."""

    operator = "argmax"
    # A lane's value and its index live on.
    alive_of_piece = 3.0

    def reduction(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """How what is read is kept; there is one kind."""
        del task
        return eviction(schedule)


class IndexedPieces(IndexedRows, ReducedPieces):
    """Long rows in pieces."""

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of a reduction, and room for the shares' indices beside that for their values."""
        made: dict[str, Argument] = {}
        for name, argument in super().arguments(task, schedule).items():
            made[name] = argument
            if isinstance(argument, WorkspaceArgument) and name == "partial":
                made["places"] = WorkspaceArgument(argument.elements, "int32")
        return made
