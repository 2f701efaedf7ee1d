"""C[M,N] = activation(ROW_SCALE[M] (A[M,K] @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]) of fp8 (e4m3), C in a wider dtype."""

from __future__ import annotations

from search_spaces.products import ScaledProduct


class Fp8Linear(ScaledProduct):
    """A quantised linear layer of fp8 (e4m3)."""

    name = "fp8_linear"
    summary = "C[M,N] = activation(ROW_SCALE[M] (A[M,K] @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]), A and B of fp8 (e4m3)"
    operand = "float8_e4m3fn"
    wide = "bfloat16"


OPERATOR = Fp8Linear()
