"""O = softmax(Q K^T / sqrt(D)) V for the newest tokens of sequences whose keys and values lie in pages, by a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Content, Cost, Launch, TensorSpec, Workload
from search_spaces.operators.attention_decode import AttentionDecode

# Page sizes of the servers that keep caches so, largest first.
PAGES = (64, 16)


class AttentionPaged(AttentionDecode):
    """Attention of T tokens, the last of S, over pages K, V[P,PAGE,G,D]; TABLE[B,S/PAGE] says which page comes when.

    Page, position, head, size is the order in which vLLM and FlashAttention keep their caches.
    """

    name = "attention_paged"
    summary = "O[B,H,T,D] = softmax(Q K^T / sqrt(D)) V, the T newest tokens over a cache of S in pages"
    axes = (
        Axis("B", "sequences"),
        Axis("H", "query heads"),
        Axis("G", "key/value heads, a divisor of H"),
        Axis("S", "length of each sequence, with the new tokens"),
        Axis("T", "new tokens, the last of the sequence; each sees itself and what is before it"),
        Axis("D", "head size", choices=(16, 32, 64, 96, 128, 256)),
        Axis("page", "positions of a page", choices=PAGES),
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """Short sequences on a CPU; 16 of 8192 with 32 heads in 8 groups of 128 in float16 on a GPU; pages of 16."""
        if kind == "llvm":
            return {"B": 2, "H": 8, "G": 2, "S": 512, "T": 1, "D": 64, "page": 16, "dtype": "float32"}
        return {"B": 16, "H": 32, "G": 8, "S": 8192, "T": 1, "D": 128, "page": 16, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """Q, K, V, the table of pages and O; as many pages as the sequences need."""
        b, h, g, s, t, d, page = workload.values
        each = math.ceil(s / page)
        return (
            TensorSpec("Q", (b, h, t, d), workload.dtype),
            TensorSpec("K", (b * each, page, g, d), workload.dtype),
            TensorSpec("V", (b * each, page, g, d), workload.dtype),
            TensorSpec("TABLE", (b, each), "int32", content=Content.PAGES, bound=b * each),
            TensorSpec("O", (b, h, t, d), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """Two products of 2 D for each key that a token sees; the positions in use, the table, Q and O once."""
        b, h, g, s, t, d, _ = workload.values
        seen = t * s - t * (t - 1) // 2
        q, k, _, table, o = self.tensors(workload)
        cache = 2 * b * s * g * d * k.bytes // math.prod(k.shape)
        return Cost(4.0 * b * h * d * seen, float(q.bytes + cache + table.bytes + o.bytes))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """Head by head in float64, over the pages in their order."""
        q, k, v, table = inputs
        b, h, g, length, tokens, d, _ = workload.values
        out = xp.empty_like(q)
        scale = 1.0 / math.sqrt(d)
        for n in range(b):
            pages = xp.astype(table[n], xp.int64)
            keys, values = (xp.reshape(xp.take(x, pages, axis=0), (-1, g, d))[:length] for x in (k, v))
            for m in range(h):
                scores = xp.matmul(q[n, m], keys[:, m // (h // g)].T) * scale
                scores = scores + xp.triu(xp.full_like(scores, -math.inf), k=length - tokens + 1)
                e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
                out[n, m] = xp.matmul(e, values[:, m // (h // g)]) / xp.sum(e, axis=-1, keepdims=True)
        return (out,)

    def position(self, workload: Workload, given: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        """By the table."""
        group, page, table = workload["H"] // workload["G"], workload["page"], given[3]
        return lambda n, m, j, e: (table[n, j // page], j % page, m // group, e)

    def gathered(self, workload: Workload, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """The pages, gathered at each call."""
        _, k, v, table = inputs
        b, g, s, d = (workload[axis] for axis in "BGSD")
        keys, values = (x[table].reshape(b, -1, g, d)[:, :s].swapaxes(1, 2) for x in (k, v))
        return keys, values

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """scaled_dot_product_attention over the gathered pages, and over pages gathered beforehand, which is a bound.

        Torch has no call over a table; what gathering costs belongs to the first.
        """
        q, k, v, table = inputs
        b, h, g, s, t, d, _ = workload.values
        attend = torch.nn.functional.scaled_dot_product_attention
        given: dict[str, Any] = {"enable_gqa": h != g}
        if t > 1:
            given["attn_mask"] = torch.ones((t, s), dtype=torch.bool, device=q.device).tril(diagonal=s - t)
        pages = table.reshape(-1).long()

        def gathered(x: Any) -> Any:
            return x.index_select(0, pages).view(b, -1, g, d)[:, :s].transpose(1, 2)

        keys, values = gathered(k).contiguous(), gathered(v).contiguous()
        return {
            "torch SDPA, pages gathered": lambda: attend(q, gathered(k), gathered(v), **given),
            "torch SDPA, no pages": lambda: attend(q, keys, values, **given),
        }


OPERATOR = AttentionPaged()
