"""What every TVM sketch gives the TVM code generator: the scheduled module of one schedule."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from search_spaces.sketch import Sketch
from search_spaces.space import Schedule

if TYPE_CHECKING:
    from search_spaces.task import Task


class TvmSketch(Sketch):
    """A sketch over an operator's TE definition."""

    generator = "tvm"

    @abstractmethod
    def scheduled(self, task: Task, schedule: Schedule) -> Any:
        """The `tvm.s_tir.Schedule` of `schedule`, postprocessed and ready to compile.

        Raises:
            InvalidSchedule: TVM refuses the decisions, with its reason.
        """
