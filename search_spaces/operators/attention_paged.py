"""O = softmax(Q K^T / sqrt(D)) V for the newest tokens of sequences whose keys and values lie in pages, by a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.errors import InvalidWorkload
from search_spaces.operator import Axis, Content, Cost, Launch, Operator, TensorSpec, Workload

# Page sizes of the servers that keep caches so, largest first.
PAGES = (64, 16)


class AttentionPaged(Operator):
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
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """Short sequences on a CPU; 16 of 8192 with 32 heads in 8 groups of 128 in float16 on a GPU; pages of 16."""
        if kind == "llvm":
            return {"B": 2, "H": 8, "G": 2, "S": 512, "T": 1, "D": 64, "page": 16, "dtype": "float32"}
        return {"B": 16, "H": 32, "G": 8, "S": 8192, "T": 1, "D": 128, "page": 16, "dtype": "float16"}

    def check(self, workload: Workload) -> None:
        """Heads must group evenly, and new tokens be part of the cache."""
        if workload["H"] % workload["G"]:
            raise InvalidWorkload(
                f"attention_paged: H={workload['H']} query heads do not divide into G={workload['G']} key/value heads",
                "choose G as a divisor of H (G=H for plain multi-head attention)",
            )
        if workload["T"] > workload["S"]:
            raise InvalidWorkload(
                f"attention_paged: T={workload['T']} new tokens are more than the S={workload['S']} of the cache",
                "S counts the new tokens too",
            )

    def workload(self, kind: str = "cuda", dtype: str | None = None, **axes: int) -> Workload:
        """As for every operator; G follows H where only H is given."""
        if "H" in axes:
            axes.setdefault("G", axes["H"])
        return super().workload(kind, dtype, **axes)

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

    def reduction_length(self, workload: Workload) -> int:
        """S: the longest sum, over the weighted values."""
        return workload["S"]

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Scores, softmax and weighted values as separate stages, in float32 between them; both products look up."""
        b, h, g, s, t, d, page = workload.values
        group, dtype = h // g, workload.dtype
        q, k, v, table = (te.placeholder(x.shape, x.dtype, name=x.name) for x in self.tensors(workload)[:-1])
        r, c = te.reduce_axis((0, d), name="r"), te.reduce_axis((0, s), name="c")
        scale = 1.0 / math.sqrt(d)

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        def cached(x: Any, n: Any, m: Any, j: Any, e: Any) -> Any:
            return wide(x[table[n, j // page], j % page, m // group, e])

        scores = te.compute(
            (b, h, t, s),
            lambda n, m, i, j: te.sum(wide(q[n, m, i, r]) * cached(k, n, m, j, r), axis=r),
            name="scores",
        )
        masked = te.compute(
            (b, h, t, s),
            lambda n, m, i, j: te.if_then_else(j <= s - t + i, scores[n, m, i, j] * scale, te.min_value("float32")),
            name="masked",
        )
        weights = topi.nn.softmax(masked, axis=-1)
        out = te.compute(
            (b, h, t, d),
            lambda n, m, i, e: te.sum(weights[n, m, i, c] * cached(v, n, m, c, e), axis=c),
            name="O" if dtype == "float32" else "O_wide",
        )
        if dtype != "float32":
            summed = out
            out = te.compute((b, h, t, d), lambda n, m, i, e: summed[n, m, i, e].astype(dtype), name="O")
        return q, k, v, table, out

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The pages gathered, then two batched products with the softmax between them."""
        q, k, v, table = inputs
        b, h, g, s, t, d, _ = workload.values
        rows = (b, g, h // g * t)
        scale = np.float32(1.0 / math.sqrt(d))
        mask = np.triu(np.full((t, s), -np.inf, dtype=np.float32), k=s - t + 1)

        def attention_paged() -> None:
            keys, values = (x[table].reshape(b, -1, g, d)[:, :s].swapaxes(1, 2) for x in (k, v))
            scores = np.matmul(q.reshape(*rows, d), keys.swapaxes(-1, -2)) * scale
            scores = scores.reshape(b, h, t, s) + mask
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            np.matmul(scores.reshape(*rows, s), values, out=outputs[0].reshape(*rows, d))

        return {"numpy": attention_paged}

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
