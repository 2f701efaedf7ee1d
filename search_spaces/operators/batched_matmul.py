"""C[B,M,N] = A[B,M,K] @ B[B,K,N], accumulated in float32; on request the right matrices are stored [N,K]."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.operator import Axis, Workload
from search_spaces.products import Form, Product


class BatchedMatmul(Product):
    """As many matrix products of one shape."""

    name = "batched_matmul"
    summary = "C[B,M,N] = A[B,M,K] @ B[B,K,N], or with B stored [B,N,K]"
    axes = (
        Axis("B", "products"),
        Axis("M", "rows of A and C"),
        Axis("N", "columns of B and C"),
        Axis("K", "columns of A, rows of B"),
        Axis("trans_b", "1: each matrix of B is stored [N,K]", least=0, choices=(0, 1)),
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """8 of 256 cubed in float32 on a CPU, 32 of 1024 cubed in float16 on a GPU, B row-major."""
        if kind == "llvm":
            return {"B": 8, "M": 256, "N": 256, "K": 256, "trans_b": 0, "dtype": "float32"}
        return {"B": 32, "M": 1024, "N": 1024, "K": 1024, "trans_b": 0, "dtype": "float16"}

    def form(self, workload: Workload) -> Form:
        """The products alone."""
        return Form(trans_b=bool(workload["trans_b"]), batch=workload["B"])


OPERATOR = BatchedMatmul()
