"""O = softmax(Q K^T / sqrt(D)) V over a sliding window: a position sees itself and some that lie before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Workload
from search_spaces.operators.attention import Attention


class AttentionWindow(Attention):
    """Prefill as in Attention, each position over the W up to itself."""

    name = "attention_window"
    summary = "O[B,H,S,D] = softmax(Q K^T / sqrt(D)) V, each position over the W up to itself"
    axes = (*Attention.axes[:-1], Axis("W", "positions seen: itself and the W - 1 before it"))

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """As for attention, with a window of a quarter of the sequence."""
        shared = {axis: value for axis, value in super().defaults(kind).items() if axis != "causal"}
        return {**shared, "W": 64 if kind == "llvm" else 1024}

    def reach(self, workload: Workload) -> int:
        """W, at most S."""
        return min(workload["W"], workload["S"])

    def cost(self, workload: Workload) -> Cost:
        """Two products of 2 D for each position seen; Q, K, V and O once."""
        b, h, s, d = (workload[a] for a in "BHSD")
        reach = self.reach(workload)
        seen = s * reach - reach * (reach - 1) // 2
        return Cost(4.0 * b * h * d * seen, float(sum(t.bytes for t in self.tensors(workload))))

    def reduction_length(self, workload: Workload) -> int:
        """The window: no sum over the weighted values is longer."""
        return self.reach(workload)

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """FlashAttention on a GPU, which skips what no position sees; else scaled_dot_product_attention with a mask."""
        q, k, v = inputs
        s, reach = workload["S"], self.reach(workload)
        if q.is_cuda:
            flash = torch.ops.aten._flash_attention_forward
            rows = [x.transpose(1, 2) for x in (q, k, v)]

            def call() -> object:
                window = {"window_size_left": reach - 1, "window_size_right": 0}
                out, *_ = flash(*rows, None, None, s, s, 0.0, False, False, **window)
                return out.transpose(1, 2)

            return {"FlashAttention": call}
        seen = torch.ones((s, s), dtype=torch.bool).tril().triu(diagonal=1 - reach)
        attend, grouped = torch.nn.functional.scaled_dot_product_attention, workload["H"] != workload["G"]
        return {"torch SDPA": lambda: attend(q, k, v, attn_mask=seen, enable_gqa=grouped)}


OPERATOR = AttentionWindow()
