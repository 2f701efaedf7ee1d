"""OUT = sum over a token's experts of WEIGHTS times SwiGLU(X W1[e]^T) W2[e]^T: the layer of a mixture of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Content, Cost, Launch, TensorSpec, Workload
from search_spaces.products import SILU, activated
from search_spaces.routed import AXES, Routed, spans


class FusedMoe(Routed):
    """All that inference engines do between the router and the sum over its choices, both products included.

    W1 holds the rows of the gate, then those of the other product, as checkpoints and engines have them.
    """

    name = "fused_moe"
    summary = "OUT[M,K] = sum over t of WEIGHTS[M,t] (SiLU(X G^T) (X U^T)) W2[e]^T, e = IDS[M,t], W1[e] = G above U"
    axes = (
        *AXES,
        Axis("N", "width of an expert on this device: columns of W2"),
        Axis("K", "width of the model: columns of X and OUT"),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """A few small experts in float32 on a CPU; 64 tokens to 8 of 128 experts in bfloat16 on a GPU."""
        if kind == "llvm":
            return {"E": 8, "M": 32, "T": 2, "N": 64, "K": 128, "dtype": "float32"}
        return {"E": 128, "M": 64, "T": 8, "N": 768, "K": 2048, "dtype": "bfloat16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X, both weights, the router's choices and their weights, OUT."""
        e, m, t, n, k = workload.values
        return (
            TensorSpec("X", (m, k), workload.dtype),
            TensorSpec("W1", (e, 2 * n, k), workload.dtype),
            TensorSpec("W2", (e, k, n), workload.dtype),
            TensorSpec("IDS", (m, t), "int32", content=Content.CHOICES, bound=e),
            TensorSpec("WEIGHTS", (m, t), "float32"),
            TensorSpec("OUT", (m, k), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """6 M T N K operations; each tensor once, of the weights no more experts than there are choices."""
        _, m, t, n, k = workload.values
        return Cost(6.0 * m * t * n * k, self.moved(workload, "W1", "W2"))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """Expert by expert in float64."""
        out = xp.zeros_like(inputs[0])
        _add_layer(workload, xp, inputs, out)
        return (out,)

    def reduction_length(self, workload: Workload) -> int:
        """Terms of the longer product, once for each of a token's experts."""
        return max(workload["K"], workload["T"] * workload["N"])

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Both products of a choice, the gate, and one reduction over choices and an expert's width, in float32."""
        e, m, t, n, k = workload.values
        dtype = workload.dtype
        x = te.placeholder((m, k), dtype, name="X")
        w1, w2 = te.placeholder((e, 2 * n, k), dtype, name="W1"), te.placeholder((e, k, n), dtype, name="W2")
        ids, weights = te.placeholder((m, t), "int32", name="IDS"), te.placeholder((m, t), "float32", name="WEIGHTS")

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        r = te.reduce_axis((0, k), name="k")
        both = te.compute(
            (m, t, 2 * n),
            lambda i, s, j: te.sum(wide(x[i, r]) * wide(w1[ids[i, s], j, r]), axis=r),
            name="both",
        )
        hidden = te.compute(
            (m, t, n), lambda i, s, j: both[i, s, j] * te.sigmoid(both[i, s, j]) * both[i, s, j + n], name="hidden"
        )
        c, h = te.reduce_axis((0, t), name="choice"), te.reduce_axis((0, n), name="n")
        sums = te.compute(
            (m, k),
            lambda i, j: te.sum(hidden[i, c, h] * wide(w2[ids[i, c], j, h]) * weights[i, c], axis=[c, h]),
            name="OUT" if dtype == "float32" else "OUT_wide",
        )
        if dtype == "float32":
            return x, w1, w2, ids, weights, sums
        return x, w1, w2, ids, weights, te.compute((m, k), lambda i, j: sums[i, j].astype(dtype), name="OUT")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.matmul, expert by expert."""
        x, w1, w2, ids, weights = inputs

        def layer() -> None:
            outputs[0][...] = 0
            _add_layer(workload, np, (x, w1, w2, ids, weights.astype(x.dtype)), outputs[0])

        return {"numpy": layer}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Torch's grouped product on a GPU, and products for each expert whose choices are known beforehand."""
        x, w1, w2, ids, weights = inputs
        out, functional = outputs[0], torch.nn.functional
        n, top = workload["N"], workload["T"]
        chosen = torch.argsort(ids.flatten().long(), stable=True)
        ends = torch.bincount(ids.flatten().long(), minlength=workload["E"]).cumsum(0).tolist()
        parts = [(e, chosen[first:last] // top, chosen[first:last]) for e, first, last in spans(ends)]
        given = weights.flatten()

        def apart() -> None:
            out.zero_()
            for expert, token, choice in parts:
                both = x[token] @ w1[expert].t()
                hidden = functional.silu(both[:, :n]) * both[:, n:]
                out.index_add_(0, token, (hidden @ w2[expert].t()) * given[choice, None].to(out.dtype))

        def grouped() -> None:
            expert, order = torch.sort(ids.flatten(), stable=True)
            ends = torch.searchsorted(expert, torch.arange(workload["E"], device=x.device), right=True)
            ends = ends.to(torch.int32)
            both = torch._grouped_mm(x[order // top], w1.transpose(-2, -1), offs=ends)
            hidden = functional.silu(both[:, :n]) * both[:, n:]
            terms = torch._grouped_mm(hidden, w2.transpose(-2, -1), offs=ends)
            back = torch.empty_like(order).scatter_(0, order, torch.arange(order.numel(), device=x.device))
            torch.sum((terms * given[order, None].to(out.dtype))[back].view(-1, top, out.shape[1]), 1, out=out)

        found: dict[str, Launch] = {"torch.matmul an expert": apart}
        if x.is_cuda and hasattr(torch, "_grouped_mm") and x.dtype == torch.bfloat16:
            found["torch._grouped_mm"] = grouped
        return found


def _add_layer(workload: Workload, xp: Any, inputs: Sequence[Any], out: Any) -> None:
    """Adds the layer to `out`, expert by expert: no token goes twice to one."""
    x, w1, w2, ids, weights = inputs
    n = workload["N"]
    for expert in range(workload["E"]):
        token, slot = xp.nonzero(ids == expert)
        both = xp.matmul(x[token], w1[expert].T)
        hidden = activated(both[:, :n], SILU, xp) * both[:, n:]
        out[token] += xp.matmul(hidden, w2[expert].T) * weights[token, slot][:, None]


OPERATOR = FusedMoe()
