"""C[M,N] = activation(ROW_SCALE[M] (A[M,K] @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]) of int8, C in a wider dtype."""

from __future__ import annotations

from collections.abc import Mapping

from search_spaces.operator import Axis, Workload
from search_spaces.products import ACTIVATION_AXIS, Form, Product


class Int8Linear(Product):
    """A quantised linear layer: scales for each token and each output channel, what follows fused."""

    name = "int8_linear"
    summary = "C[M,N] = activation(ROW_SCALE[M] (A[M,K] @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]), A and B of int8"
    axes = (
        Axis("M", "rows of A and C: tokens"),
        Axis("N", "rows of B: output features"),
        Axis("K", "columns of A and B: input features"),
        ACTIVATION_AXIS,
        Axis("bias", "1: adds BIAS before the activation", least=0, choices=(0, 1)),
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """With bias: 512 cubed on a CPU, 4096 cubed on a GPU."""
        if kind == "llvm":
            return {"M": 512, "N": 512, "K": 512, "activation": 0, "bias": 1, "dtype": "float32"}
        return {"M": 4096, "N": 4096, "K": 4096, "activation": 0, "bias": 1, "dtype": "float16"}

    def form(self, workload: Workload) -> Form:
        """Products of int8, over weights stored by rows of outputs."""
        return Form(
            trans_b=True,
            bias=bool(workload["bias"]),
            activation=workload["activation"],
            operand="int8",
        )


OPERATOR = Int8Linear()
