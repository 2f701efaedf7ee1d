"""What operators of a mixture of experts share, whose tokens go to some of E experts each."""

from __future__ import annotations

from itertools import pairwise

from search_spaces.errors import InvalidWorkload
from search_spaces.operator import Axis, Operator, TensorSpec, Workload

# Experts, tokens and a token's experts.
AXES = (
    Axis("E", "experts"),
    Axis("M", "tokens"),
    Axis("T", "experts that each token goes to (top-k), at most E"),
)


class Routed(Operator):
    """Products with the weights of E experts, of which each of M tokens goes to T."""

    def check(self, workload: Workload) -> None:
        """A token goes to different experts."""
        if workload["T"] > workload["E"]:
            raise InvalidWorkload(
                f"{self.name}: a token cannot go to T={workload['T']} of E={workload['E']} experts",
                "choose T no larger than E",
            )

    def moved(self, workload: Workload, *weights: str) -> float:
        """Bytes of all tensors, of those named `weights` for no more experts than tokens go to."""
        e, m, t = (workload[axis.name] for axis in AXES)

        def least(spec: TensorSpec) -> int:
            return spec.bytes // e * min(e, m * t) if spec.name in weights else spec.bytes

        return float(sum(map(least, self.tensors(workload))))


def spans(ends: list[int]) -> list[tuple[int, int, int]]:
    """Expert, first row and the row after the last of each expert that has rows, which end at `ends`."""
    return [(n, first, last) for n, (first, last) in enumerate(pairwise([0, *ends])) if first < last]
