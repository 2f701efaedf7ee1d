"""O = softmax(Q K^T / sqrt(D)) V for the newest tokens of a sequence, over the cache of its keys and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from search_spaces.errors import InvalidWorkload
from search_spaces.head_groups import HeadGroups
from search_spaces.operator import Axis, Cost, Launch, TensorSpec, Workload


class AttentionDecode(HeadGroups):
    """Attention of T tokens, the last of S, over K, V[B,G,S,D]; query heads H share key/value heads G."""

    name = "attention_decode"
    summary = "O[B,H,T,D] = softmax(Q K^T / sqrt(D)) V, the T newest tokens over a cache of S"
    axes: tuple[Axis, ...] = (
        Axis("B", "batch"),
        Axis("H", "query heads"),
        Axis("G", "key/value heads, a divisor of H"),
        Axis("S", "length of the cache, with the new tokens"),
        Axis("T", "new tokens, the last of the sequence; each sees itself and what is before it"),
        Axis("D", "head size", choices=(16, 32, 64, 96, 128, 256)),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """A short cache on a CPU; 16 sequences of 8192 with 32 heads in 8 groups of 128 in float16 on a GPU."""
        if kind == "llvm":
            return {"B": 1, "H": 8, "G": 2, "S": 1024, "T": 1, "D": 64, "dtype": "float32"}
        return {"B": 16, "H": 32, "G": 8, "S": 8192, "T": 1, "D": 128, "dtype": "float16"}

    def check(self, workload: Workload) -> None:
        """Heads must group evenly, and new tokens be part of the cache."""
        super().check(workload)
        if workload["T"] > workload["S"]:
            raise InvalidWorkload(
                f"{self.name}: T={workload['T']} new tokens are more than the S={workload['S']} of the cache",
                "S counts the new tokens too",
            )

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """Q, K, V and O."""
        b, h, g, s, t, d = workload.values
        return (
            TensorSpec("Q", (b, h, t, d), workload.dtype),
            TensorSpec("K", (b, g, s, d), workload.dtype),
            TensorSpec("V", (b, g, s, d), workload.dtype),
            TensorSpec("O", (b, h, t, d), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """Two products of 2 D for each key that a token sees; the cache, Q and O once."""
        b, h, _, s, t, d = workload.values
        seen = t * s - t * (t - 1) // 2
        return Cost(4.0 * b * h * d * seen, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """Head by head in float64."""
        q, k, v = inputs
        group, tokens, length = workload["H"] // workload["G"], workload["T"], workload["S"]
        out = xp.empty_like(q)
        scale = 1.0 / math.sqrt(workload["D"])
        later = xp.triu(xp.full_like(xp.matmul(q[0, 0], k[0, 0].T), -math.inf), k=length - tokens + 1)
        for b in range(workload["B"]):
            for h in range(workload["H"]):
                scores = xp.matmul(q[b, h], k[b, h // group].T) * scale + later
                e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
                out[b, h] = xp.matmul(e, v[b, h // group]) / xp.sum(e, axis=-1, keepdims=True)
        return (out,)

    def position(self, workload: Workload, given: Sequence[Any]) -> Callable[..., tuple[Any, ...]]:
        """Where the placeholders K and V have an element of sequence n, query head m, position j and feature e."""
        group = workload["H"] // workload["G"]
        return lambda n, m, j, e: (n, m // group, j, e)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Scores, softmax and weighted values as separate stages, in float32 between them."""
        b, h, s, t, d = (workload[axis] for axis in "BHSTD")
        dtype = workload.dtype
        given = tuple(te.placeholder(x.shape, x.dtype, name=x.name) for x in self.tensors(workload) if not x.output)
        q, k, v = given[:3]
        position = self.position(workload, given)
        r, c = te.reduce_axis((0, d), name="r"), te.reduce_axis((0, s), name="c")
        scale = 1.0 / math.sqrt(d)

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        scores = te.compute(
            (b, h, t, s),
            lambda n, m, i, j: te.sum(wide(q[n, m, i, r]) * wide(k[position(n, m, j, r)]), axis=r),
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
            lambda n, m, i, e: te.sum(weights[n, m, i, c] * wide(v[position(n, m, c, e)]), axis=c),
            name="O" if dtype == "float32" else "O_wide",
        )
        if dtype != "float32":
            summed = out
            out = te.compute((b, h, t, d), lambda n, m, i, e: summed[n, m, i, e].astype(dtype), name="O")
        return *given, out

    def gathered(self, workload: Workload, inputs: Sequence[Any]) -> tuple[Any, Any]:
        """Keys and values of numpy, shape (B, G, S, D)."""
        return inputs[1], inputs[2]

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Two batched products, the heads of a group together, with the softmax between them."""
        q = inputs[0]
        b, h, g, s, t, d = (workload[axis] for axis in "BHGSTD")
        rows = (b, g, h // g * t)
        scale = np.float32(1.0 / math.sqrt(d))
        mask = np.triu(np.full((t, s), -np.inf, dtype=np.float32), k=s - t + 1)

        def attend() -> None:
            keys, values = self.gathered(workload, inputs)
            scores = np.matmul(q.reshape(*rows, d), keys.swapaxes(-1, -2)) * scale
            scores = scores.reshape(b, h, t, s) + mask
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=-1, keepdims=True)
            np.matmul(scores.reshape(*rows, s), values, out=outputs[0].reshape(*rows, d))

        return {"numpy": attend}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """scaled_dot_product_attention with each backend that takes this workload."""
        q, k, v = inputs
        h, g, t, s = (workload[axis] for axis in "HGTS")
        attend = torch.nn.functional.scaled_dot_product_attention
        backends = torch.nn.attention.SDPBackend
        given: dict[str, Any] = {"enable_gqa": h != g}
        if t > 1:
            given["attn_mask"] = torch.ones((t, s), dtype=torch.bool, device=q.device).tril(diagonal=s - t)

        def with_backend(backend: Any) -> Launch:
            def call() -> object:
                with torch.nn.attention.sdpa_kernel(backend):
                    return attend(q, k, v, **given)

            return call

        if not q.is_cuda:
            return {"torch SDPA": lambda: attend(q, k, v, **given)}
        named = {"SDPA cuDNN": backends.CUDNN_ATTENTION, "SDPA FlashAttention": backends.FLASH_ATTENTION}
        named["SDPA memory-efficient"] = backends.EFFICIENT_ATTENTION
        return {name: with_backend(backend) for name, backend in named.items()}


OPERATOR = AttentionDecode()
