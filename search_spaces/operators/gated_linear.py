"""C[M,N] = activation(A[M,K] @ B[N,K]^T) * (A @ UP[N,K]^T): the first half of a gated MLP, SwiGLU with SiLU."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.operator import Axis, Workload
from search_spaces.products import ACTIVATION_AXIS, Form, Product


class GatedLinear(Product):
    """Two linear layers of one input, one gating the other (Shazeer, GLU Variants Improve Transformer, 2020)."""

    name = "gated_linear"
    summary = "C[M,N] = activation(A[M,K] @ B[N,K]^T) * (A @ UP[N,K]^T)"
    axes = (
        Axis("M", "rows of A and C: tokens"),
        Axis("N", "rows of B and UP: output features"),
        Axis("K", "columns of A, B and UP: input features"),
        ACTIVATION_AXIS,
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """SwiGLU: a small one in float32 on a CPU, that of an 8-billion-parameter model in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 256, "N": 512, "K": 256, "activation": 3, "dtype": "float32"}
        return {"M": 4096, "N": 14336, "K": 4096, "activation": 3, "dtype": "float16"}

    def form(self, workload: Workload) -> Form:
        """The activated product times the other, over weights stored by rows of outputs."""
        return Form(trans_b=True, activation=workload["activation"], gated=True)


OPERATOR = GatedLinear()
