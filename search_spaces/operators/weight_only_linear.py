"""C[M,N] = A[M,K] W[N,K]^T, the weights kept as integers of 4 or 8 bits with a scale for each group of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from search_spaces.errors import InvalidWorkload
from search_spaces.operator import Axis, Content, Cost, Launch, Operator, TensorSpec, Workload

# Rows, columns and groups of the small workloads that sketches are tried on.
_EDGES = ((17, 33, 3), (3, 127, 2), (1, 1, 1))


class WeightOnlyLinear(Operator):
    """A linear layer whose weights alone are quantised, as for decoding: W[n,k] = code SCALE[k / group, n].

    B[K/group, N, group bits / 8] holds the codes group by group, so that what a program needs of one lies together.
    Codes of 8 bits are in order. Of 4 bits, byte j of a group holds input j in its lower half and input group/2 + j in
    its upper one, each in two's complement, so that no code has to change its place among the others.
    """

    name = "weight_only_linear"
    summary = "C[M,N] = A[M,K] W[N,K]^T, W of integers of 4 or 8 bits with a scale for each group of inputs"
    axes = (
        Axis("M", "rows of A and C: tokens"),
        Axis("N", "output features"),
        Axis("K", "columns of A: input features, a multiple of group"),
        Axis("bits", "of a weight", choices=(4, 8)),
        Axis("group", "inputs that share a scale", choices=(32, 64, 128)),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """4 bits in groups of 128: 16 tokens through a small layer on a CPU, through one of an 8B model on a GPU."""
        if kind == "llvm":
            return {"M": 16, "N": 512, "K": 512, "bits": 4, "group": 128, "dtype": "float32"}
        return {"M": 16, "N": 14336, "K": 4096, "bits": 4, "group": 128, "dtype": "float16"}

    def check(self, workload: Workload) -> None:
        """Groups are whole."""
        if workload["K"] % workload["group"]:
            raise InvalidWorkload(
                f"weight_only_linear: K={workload['K']} is no multiple of group={workload['group']}",
                "choose a smaller group, or fill up K with zeros",
            )

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """A, B, the scales and C."""
        m, n, k, bits, group = workload.values
        return (
            TensorSpec("A", (m, k), workload.dtype),
            TensorSpec("B", (k // group, n, group * bits // 8), "int8", content=Content.CODES),
            TensorSpec("SCALE", (k // group, n), workload.dtype),
            TensorSpec("C", (m, n), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """2 M N K operations; each tensor once."""
        m, n, k = (workload[axis] for axis in "MNK")
        return Cost(2.0 * m * n * k, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The weights in float64, then the product."""
        a, b, scale = inputs
        return (xp.matmul(a, self.weights(workload, xp, b, scale).T),)

    def weights(self, workload: Workload, xp: Any, codes: Any, scale: Any) -> Any:
        """W[N,K] in the dtype of `scale`, from codes in a float dtype."""
        if workload["bits"] == 4:
            upper = xp.floor(codes / 16.0)
            lower = codes - 16.0 * upper
            codes = xp.concat([lower - 16.0 * xp.floor(lower / 8.0), upper], axis=-1)
        wide = codes * scale[:, :, None]
        return xp.reshape(xp.moveaxis(wide, 0, 1), (workload["N"], workload["K"]))

    def reduction_length(self, workload: Workload) -> int:
        """K."""
        return workload["K"]

    def edge_workloads(self, workload: Workload) -> tuple[Workload, ...]:
        """Few rows, columns and groups, none a multiple of a tile."""
        bits, group = workload["bits"], workload["group"]
        found = []
        for m, n, groups in _EDGES:
            most = (min(m, workload["M"]), min(n, workload["N"]), min(groups * group, workload["K"]))
            axes = dict(zip("MNK", most, strict=True))
            found.append(self.workload("cuda", workload.dtype, **axes, bits=bits, group=group))
        return tuple(w for w in dict.fromkeys(found) if w != workload)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """The weights in float32 as one stage, the product as another."""
        m, n, k, bits, group = workload.values
        a, b, scale = (te.placeholder(t.shape, t.dtype, name=t.name) for t in self.tensors(workload)[:-1])
        r = te.reduce_axis((0, k), name="k")

        def code(j: Any, i: Any) -> Any:
            inside = i % group
            if bits == 8:
                return b[i // group, j, inside].astype("int32")
            both = b[i // group, j, inside % (group // 2)].astype("int32")
            return te.if_then_else(inside < group // 2, ((both & 15) ^ 8) - 8, both >> 4)

        weights = te.compute(
            (n, k),
            lambda j, i: code(j, i).astype("float32") * scale[i // group, j].astype("float32"),
            name="weights",
        )
        sums = te.compute((m, n), lambda i, j: te.sum(a[i, r].astype("float32") * weights[j, r], axis=r), name="C_wide")
        return a, b, scale, te.compute((m, n), lambda i, j: sums[i, j].astype(workload.dtype), name="C")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.matmul over weights dequantised beforehand."""
        a, b, scale = inputs
        weights = self.weights(workload, np, b.astype(scale.dtype), scale)
        return {"numpy, weights dequantised": lambda: np.matmul(a, weights.T, out=outputs[0])}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.matmul over weights dequantised beforehand, and torch's product of packed 4-bit weights on a GPU."""
        a, b, scale = inputs
        weights = self.weights(workload, torch, b.float(), scale.float()).to(a.dtype)
        found: dict[str, Launch] = {
            "torch.matmul, weights dequantised": partial(torch.matmul, a, weights.t(), out=outputs[0])
        }
        if a.is_cuda and a.dtype == torch.bfloat16 and workload["bits"] == 4:
            codes = self.weights(workload, torch, b.float(), torch.ones_like(scale, dtype=torch.float32))
            found["torch._weight_int4pack_mm"] = _packed(torch, a, codes.to(torch.int32) + 8, scale, workload["group"])
        return found


def _packed(torch: Any, a: Any, codes: Any, scale: Any, group: int) -> Launch:
    """Torch's call, whose weights are packed in pairs and those in an order of its own; its zero points are 0.

    Packing waits for the first call, which may find that the shape cannot be packed.
    """
    pairs = (codes[:, ::2] << 4 | codes[:, 1::2]).to(torch.uint8)
    scales = torch.stack([scale, torch.zeros_like(scale)], dim=-1).contiguous()

    @cache
    def packed() -> Any:
        return torch._convert_weight_to_int4pack(pairs, 8)

    return lambda: torch._weight_int4pack_mm(a, packed(), group, scales)


OPERATOR = WeightOnlyLinear()
