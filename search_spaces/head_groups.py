"""What operators of attention share whose query heads share heads of keys and values."""

from __future__ import annotations

from search_spaces.errors import InvalidWorkload
from search_spaces.operator import Operator, Workload


class HeadGroups(Operator):
    """Attention of H query heads over G heads of keys and values, of S positions."""

    def check(self, workload: Workload) -> None:
        """Heads must group evenly."""
        if workload["H"] % workload["G"]:
            raise InvalidWorkload(
                f"{self.name}: H={workload['H']} query heads do not divide into G={workload['G']} key/value heads",
                "choose G as a divisor of H (G=H for plain multi-head attention)",
            )

    def workload(self, kind: str = "cuda", dtype: str | None = None, **axes: int) -> Workload:
        """As for every operator; G follows H where only H is given."""
        if "H" in axes:
            axes.setdefault("G", axes["H"])
        return super().workload(kind, dtype, **axes)

    def reduction_length(self, workload: Workload) -> int:
        """S: the longest sum, over the weighted values."""
        return workload["S"]
