"""O = softmax(Q K^T / sqrt(D)) V, prefill, full or causal, with grouped key/value heads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.head_groups import HeadGroups
from search_spaces.operator import Axis, Cost, Launch, TensorSpec, Workload


class Attention(HeadGroups):
    """Scaled dot-product attention over Q[B,H,S,D] and K, V[B,G,S,D]."""

    name = "attention"
    summary = "O[B,H,S,D] = softmax(Q K^T / sqrt(D)) V, full or causal, H query and G key/value heads"
    axes = (
        Axis("B", "batch"),
        Axis("H", "query heads"),
        Axis("G", "key/value heads, a divisor of H"),
        Axis("S", "sequence length"),
        Axis("D", "head size", choices=(16, 32, 64, 96, 128, 256)),
        Axis("causal", "1: a position sees itself and what is before it", least=0, choices=(0, 1)),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """A small full attention on a CPU; B4 H32 S4096 D128 causal in float16 on a GPU."""
        if kind == "llvm":
            return {"B": 1, "H": 4, "G": 4, "S": 256, "D": 64, "causal": 0, "dtype": "float32"}
        return {"B": 4, "H": 32, "G": 32, "S": 4096, "D": 128, "causal": 1, "dtype": "float16"}

    def reach(self, workload: Workload) -> int | None:
        """How many positions one sees, itself the last of them; None where it sees all, S where all before it."""
        return workload["S"] if workload["causal"] else None

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """Q, K, V and O."""
        b, h, g, s, d = (workload[a] for a in "BHGSD")
        return (
            TensorSpec("Q", (b, h, s, d), workload.dtype),
            TensorSpec("K", (b, g, s, d), workload.dtype),
            TensorSpec("V", (b, g, s, d), workload.dtype),
            TensorSpec("O", (b, h, s, d), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """Two products of 2 S S D each a head, half of that if causal; Q, K, V and O once."""
        b, h, s, d = (workload[a] for a in "BHSD")
        operations = 4.0 * b * h * s * s * d * (0.5 if workload["causal"] else 1.0)
        return Cost(operations, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """Head by head in float64, so that only one S x S matrix of scores is alive."""
        q, k, v = inputs
        group = workload["H"] // workload["G"]
        out = xp.empty_like(q)
        scale = 1.0 / math.sqrt(workload["D"])
        reach, masked = self.reach(workload), None
        if reach is not None:
            unseen = xp.full_like(xp.matmul(q[0, 0], q[0, 0].T), -math.inf)
            masked = xp.triu(unseen, k=1)
            if reach < workload["S"]:
                masked = masked + xp.tril(unseen, k=-reach)
        for b in range(workload["B"]):
            for h in range(workload["H"]):
                scores = xp.matmul(q[b, h], k[b, h // group].T) * scale
                if masked is not None:
                    scores = scores + masked
                e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
                out[b, h] = xp.matmul(e, v[b, h // group]) / xp.sum(e, axis=-1, keepdims=True)
        return (out,)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Scores, softmax and weighted values as separate stages, in float32 between them."""
        b, h, g, s, d = (workload[a] for a in "BHGSD")
        group = h // g
        q = te.placeholder((b, h, s, d), workload.dtype, name="Q")
        k = te.placeholder((b, g, s, d), workload.dtype, name="K")
        v = te.placeholder((b, g, s, d), workload.dtype, name="V")
        r = te.reduce_axis((0, d), name="r")
        c = te.reduce_axis((0, s), name="c")
        scale = 1.0 / math.sqrt(d)

        def wide(value: Any) -> Any:
            return value if workload.dtype == "float32" else value.astype("float32")

        scores = te.compute(
            (b, h, s, s),
            lambda n, m, i, j: te.sum(wide(q[n, m, i, r]) * wide(k[n, m // group, j, r]), axis=r),
            name="scores",
        )
        scaled = te.compute((b, h, s, s), lambda n, m, i, j: scores[n, m, i, j] * scale, name="scaled")
        reach = self.reach(workload)
        if reach is not None:
            unmasked = scaled

            def seen(i: Any, j: Any) -> Any:
                return j <= i if reach == s else te.all(j <= i, i - j < reach)

            scaled = te.compute(
                (b, h, s, s),
                lambda n, m, i, j: te.if_then_else(seen(i, j), unmasked[n, m, i, j], te.min_value("float32")),
                name="masked",
            )
        weights = topi.nn.softmax(scaled, axis=-1)
        out = te.compute(
            (b, h, s, d),
            lambda n, m, i, e: te.sum(weights[n, m, i, c] * wide(v[n, m // group, c, e]), axis=c),
            name="O" if workload.dtype == "float32" else "O_wide",
        )
        if workload.dtype != "float32":
            summed = out
            out = te.compute((b, h, s, d), lambda n, m, i, e: summed[n, m, i, e].astype(workload.dtype), name="O")
        return q, k, v, out

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Two batched products with the softmax between them."""
        q, k, v = inputs
        group = workload["H"] // workload["G"]
        scale = np.float32(1.0 / math.sqrt(workload["D"]))
        s, reach, mask = workload["S"], self.reach(workload), None
        if reach is not None:
            mask = np.where(
                np.tri(s, dtype=bool) & ~np.tri(s, k=-reach, dtype=bool), np.float32(0), np.float32(-np.inf)
            )

        def attention() -> None:
            scores = np.matmul(q, np.repeat(k, group, axis=1).swapaxes(-1, -2)) * scale
            if mask is not None:
                scores += mask
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            np.matmul(scores, np.repeat(v, group, axis=1), out=outputs[0])

        return {"numpy": attention}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """scaled_dot_product_attention with each backend that takes this workload."""
        q, k, v = inputs
        attend = torch.nn.functional.scaled_dot_product_attention
        backends = torch.nn.attention.SDPBackend
        causal, grouped = bool(workload["causal"]), workload["H"] != workload["G"]

        def with_backend(backend: Any) -> Launch:
            def call() -> object:
                with torch.nn.attention.sdpa_kernel(backend):
                    return attend(q, k, v, is_causal=causal, enable_gqa=grouped)

            return call

        if not q.is_cuda:
            return {"torch SDPA": lambda: attend(q, k, v, is_causal=causal, enable_gqa=grouped)}
        named = {"SDPA cuDNN": backends.CUDNN_ATTENTION, "SDPA FlashAttention": backends.FLASH_ATTENTION}
        return {name: with_backend(backend) for name, backend in named.items()}


OPERATOR = Attention()
