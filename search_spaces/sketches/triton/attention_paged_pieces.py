"""Attention of few queries over a cache in pages that is split among programs, joined in the same launch."""

from __future__ import annotations

from search_spaces.sketches.triton.attention_decode_pieces import AttentionDecodePieces
from search_spaces.sketches.triton.base import Argument, TensorArgument
from search_spaces.space import Schedule
from search_spaces.task import Task


class AttentionPagedPieces(AttentionDecodePieces):
    """As over a cache in one piece; a block of keys may be part of a page or several pages."""

    name = "triton.attention_paged_pieces"
    operator = "attention_paged"
    kernel = "search_spaces.kernels.attention_paged:decode"
    summary = "flash decoding: the pages in pieces, joined by the program that ends last"

    def staged_bytes(self, task: Task, block_m: int, block_n: int, stages: int) -> int:
        """Another copy less than over one piece of memory: where a page is takes a stage of its own."""
        return super().staged_bytes(task, block_m, block_n, max(1, stages - 1))

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of the cache in one piece, with the table of pages."""
        made: dict[str, Argument] = {}
        for name, argument in super().arguments(task, schedule).items():
            made[name] = argument
            if name == "v":
                made["table"] = TensorArgument("TABLE")
        return made

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """Those of the cache in one piece, and the page after the shape."""
        made: dict[str, int | float | bool | str] = {}
        for name, value in super().constants(task, schedule).items():
            made[name] = value
            if name == "D":
                made["PAGE"] = task.workload["page"]
        return made


SKETCH = AttentionPagedPieces()
