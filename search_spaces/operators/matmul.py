"""C[M,N] = A[M,K] @ B[K,N], accumulated in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload


class Matmul(Operator):
    """Matrix product of two row-major matrices."""

    name = "matmul"
    summary = "C[M,N] = A[M,K] @ B[K,N]"
    axes = (Axis("M", "rows of A and C"), Axis("N", "columns of B and C"), Axis("K", "columns of A, rows of B"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """512 cubed in float32 on a CPU, 4096 cubed in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 512, "N": 512, "K": 512, "dtype": "float32"}
        return {"M": 4096, "N": 4096, "K": 4096, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """A, B and C."""
        m, n, k = (workload[a] for a in "MNK")
        return (
            TensorSpec("A", (m, k), workload.dtype),
            TensorSpec("B", (k, n), workload.dtype),
            TensorSpec("C", (m, n), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """2 M N K operations; A, B and C once."""
        m, n, k = (workload[a] for a in "MNK")
        return Cost(2.0 * m * n * k, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The product in float64."""
        a, b = inputs
        return (xp.matmul(a, b),)

    def reduction_length(self, workload: Workload) -> int:
        """K."""
        return workload["K"]

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """The product as one reduction, accumulated in float32 for narrower dtypes."""
        m, n, k = (workload[a] for a in "MNK")
        dtype = workload.dtype
        a = te.placeholder((m, k), dtype, name="A")
        b = te.placeholder((k, n), dtype, name="B")
        r = te.reduce_axis((0, k), name="k")
        if dtype == "float32":
            return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
        wide = te.compute(
            (m, n),
            lambda i, j: te.sum(a[i, r].astype("float32") * b[r, j].astype("float32"), axis=r),
            name="C_wide",
        )
        return a, b, te.compute((m, n), lambda i, j: wide[i, j].astype(dtype), name="C")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.matmul, that is the BLAS numpy was built with."""
        a, b = inputs
        return {"numpy": lambda: np.matmul(a, b, out=outputs[0])}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.matmul: cuBLAS on a GPU, oneDNN or MKL on a CPU."""
        a, b = inputs
        name = "cuBLAS" if a.is_cuda else "torch"
        return {name: lambda: torch.matmul(a, b, out=outputs[0])}


OPERATOR = Matmul()
