"""C[M,N] = A[M,K] @ B[K,N], accumulated in float32; on request B is stored [N,K]."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.operator import Axis, Workload
from search_spaces.products import Form, Product


class Matmul(Product):
    """Matrix product of two row-major matrices, or of one with the transpose of another."""

    name = "matmul"
    summary = "C[M,N] = A[M,K] @ B[K,N], or with B stored [N,K]"
    axes = (
        Axis("M", "rows of A and C"),
        Axis("N", "columns of B and C"),
        Axis("K", "columns of A, rows of B"),
        Axis("trans_b", "1: B is stored [N,K], as the weights of a linear layer", least=0, choices=(0, 1)),
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """512 cubed in float32 on a CPU, 4096 cubed in float16 on a GPU, B row-major."""
        if kind == "llvm":
            return {"M": 512, "N": 512, "K": 512, "trans_b": 0, "dtype": "float32"}
        return {"M": 4096, "N": 4096, "K": 4096, "trans_b": 0, "dtype": "float16"}

    def form(self, workload: Workload) -> Form:
        """The product alone."""
        return Form(trans_b=bool(workload["trans_b"]))


OPERATOR = Matmul()
