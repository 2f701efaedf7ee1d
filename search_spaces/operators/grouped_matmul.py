"""C[R,N] = A[R,K] @ B[e,N,K]^T, rows in groups of which each has an expert e of its own: a mixture of experts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Content, Cost, Launch, TensorSpec, Workload
from search_spaces.routed import AXES, Routed, spans


class GroupedMatmul(Routed):
    """R = M T rows, tokens sorted by the expert that they go to; ENDS[E] says where each expert's rows end.

    Groups are uneven, and one may be empty. The weights lie as torch.nn.Linear has them.
    """

    name = "grouped_matmul"
    summary = "C[R,N] = A[R,K] @ B[e,N,K]^T for the rows R = M T of each expert e, which end at ENDS[E]"
    axes = (
        *AXES,
        Axis("N", "rows of an expert's weights: output features"),
        Axis("K", "columns of A and of the weights: input features"),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """A few small experts in float32 on a CPU; 4096 tokens to 6 of 64 experts in bfloat16 on a GPU."""
        if kind == "llvm":
            return {"E": 8, "M": 128, "T": 2, "N": 256, "K": 256, "dtype": "float32"}
        return {"E": 64, "M": 4096, "T": 6, "N": 2816, "K": 2048, "dtype": "bfloat16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """A, B, the ends of the groups and C."""
        e, m, t, n, k = workload.values
        return (
            TensorSpec("A", (m * t, k), workload.dtype),
            TensorSpec("B", (e, n, k), workload.dtype),
            TensorSpec("ENDS", (e,), "int32", content=Content.OFFSETS, bound=m * t),
            TensorSpec("C", (m * t, n), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """2 R N K operations; each tensor once, of the weights no more experts than there are rows."""
        _, m, t, n, k = workload.values
        return Cost(2.0 * m * t * n * k, self.moved(workload, "B"))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """Expert by expert in float64."""
        a, b, ends = inputs
        parts, start = [], 0
        for expert in range(workload["E"]):
            end = int(ends[expert])
            parts.append(xp.matmul(a[start:end], b[expert].T))
            start = end
        return (xp.concat(parts, axis=0),)

    def reduction_length(self, workload: Workload) -> int:
        """K."""
        return workload["K"]

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """The expert of each row, counted by the ends before it, and one reduction in float32."""
        e, m, t, n, k = workload.values
        dtype = workload.dtype
        a, b = te.placeholder((m * t, k), dtype, name="A"), te.placeholder((e, n, k), dtype, name="B")
        ends = te.placeholder((e,), "int32", name="ENDS")
        r, s = te.reduce_axis((0, k), name="k"), te.reduce_axis((0, e), name="e")
        before = te.compute((m * t,), lambda i: te.sum(te.if_then_else(ends[s] <= i, 1, 0), axis=s), name="expert")

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        sums = te.compute(
            (m * t, n),
            lambda i, j: te.sum(wide(a[i, r]) * wide(b[before[i], j, r]), axis=r),
            name="C" if dtype == "float32" else "C_wide",
        )
        if dtype == "float32":
            return a, b, ends, sums
        return a, b, ends, te.compute((m * t, n), lambda i, j: sums[i, j].astype(dtype), name="C")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.matmul, expert by expert."""
        a, b, ends = inputs

        def product() -> None:
            start = 0
            for weights, end in zip(b, ends.astype(int), strict=True):
                np.matmul(a[start:end], weights.T, out=outputs[0][start:end])
                start = end

        return {"numpy": product}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Torch's grouped product on a GPU, and a product for each expert whose groups are known beforehand."""
        a, b, ends = inputs
        groups = spans([int(end) for end in ends.tolist()])

        def apart() -> None:
            for expert, first, last in groups:
                torch.matmul(a[first:last], b[expert].t(), out=outputs[0][first:last])

        found: dict[str, Launch] = {"a torch.matmul an expert": apart}
        if a.is_cuda and hasattr(torch, "_grouped_mm"):
            found["torch._grouped_mm"] = lambda: torch._grouped_mm(a, b.transpose(-2, -1), offs=ends)
        return found


OPERATOR = GroupedMatmul()
