"""C[M,N] = activation(A[M,K] @ B[N,K]^T + BIAS[N]) + RESIDUAL[M,N]: a linear layer and what follows it."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.operator import Axis, Workload
from search_spaces.products import ACTIVATION_AXIS, Form, Product


class Linear(Product):
    """A linear layer, its weights stored as torch.nn.Linear stores them."""

    name = "linear"
    summary = "C[M,N] = activation(A[M,K] @ B[N,K]^T + BIAS[N]) + RESIDUAL[M,N]"
    axes = (
        Axis("M", "rows of A and C: tokens"),
        Axis("N", "rows of B: output features"),
        Axis("K", "columns of A and B: input features"),
        ACTIVATION_AXIS,
        Axis("bias", "1: adds BIAS before the activation", least=0, choices=(0, 1)),
        Axis("residual", "1: adds RESIDUAL after the activation", least=0, choices=(0, 1)),
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """Bias and GELU: 512 cubed in float32 on a CPU, the first layer of a large MLP in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 512, "N": 512, "K": 512, "activation": 2, "bias": 1, "residual": 0, "dtype": "float32"}
        return {"M": 4096, "N": 16384, "K": 4096, "activation": 2, "bias": 1, "residual": 0, "dtype": "float16"}

    def form(self, workload: Workload) -> Form:
        """Whatever the axes say, over weights stored by rows of outputs."""
        return Form(
            trans_b=True,
            bias=bool(workload["bias"]),
            activation=workload["activation"],
            residual=bool(workload["residual"]),
        )


OPERATOR = Linear()
