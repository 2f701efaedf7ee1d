"""C[M,N] = activation(ROW_SCALE[M] (A[M,K] @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]) of int8, C in a wider dtype."""

from __future__ import annotations

from search_spaces.products import ScaledProduct


class Int8Linear(ScaledProduct):
    """A quantised linear layer of int8."""

    name = "int8_linear"
    summary = "C[M,N] = activation(ROW_SCALE[M] (A[M,K] @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]), A and B of int8"
    operand = "int8"
    wide = "float16"


OPERATOR = Int8Linear()
