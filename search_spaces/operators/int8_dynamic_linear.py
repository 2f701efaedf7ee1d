"""C[M,N] = activation(s[M] (round(A[M,K] / s) @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]): int8 with activations made so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Launch, Operator, TensorSpec, Workload
from search_spaces.products import ScaledProduct, activated

# The largest int8 of both signs.
LARGEST_CODE = 127.0


class Int8DynamicLinear(ScaledProduct):
    """A linear layer of int8 whose activations come in a float dtype and are quantised for each row on the way.

    The scale s of a row is its largest magnitude over 127. Codes are the exact 127 A over that magnitude, rounded once
    and then to whole numbers, halves to even: half of the largest is a tie, which no rounding of s may decide.
    """

    name = "int8_dynamic_linear"
    summary = "C[M,N] = activation(s[M] (round(A[M,K] / s) @ B[N,K]^T) COLUMN_SCALE[N] + BIAS[N]), s = max|A|/127"
    operand = "int8"
    wide = "float16"
    # None: MetaSchedule's rules move the scales, on which two stages wait, to where one of them is not.
    compute = Operator.compute

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """A, the codes B, the scales of the columns, BIAS where there is one, and C."""
        m, n, k = (workload[a] for a in "MNK")
        made = [
            TensorSpec("A", (m, k), workload.dtype),
            TensorSpec("B", (n, k), "int8"),
            TensorSpec("COLUMN_SCALE", (n,), "float32"),
        ]
        if workload["bias"]:
            made.append(TensorSpec("BIAS", (n,), workload.dtype))
        return (*made, TensorSpec("C", (m, n), workload.dtype, output=True))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The definition, in float64; a row of zeros stays one."""
        a, b, columns, *rest = inputs
        largest = xp.max(xp.abs(a), axis=-1, keepdims=True)
        codes = xp.round(a * LARGEST_CODE / xp.where(largest > 0.0, largest, xp.ones_like(largest)))
        c = xp.matmul(codes, b.T) * (largest / LARGEST_CODE) * columns
        if workload["bias"]:
            c = c + rest[0]
        return (activated(c, workload["activation"], xp),)

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The codes as floats, the BLAS, and what follows in place."""
        a, b, columns, *rest = inputs
        c = outputs[0]

        def product() -> None:
            largest = np.abs(a).max(axis=-1, keepdims=True)
            codes = np.round(a * c.dtype.type(LARGEST_CODE) / np.where(largest > 0, largest, 1))
            np.matmul(codes, b.T.astype(c.dtype), out=c)
            np.multiply(c, largest / c.dtype.type(LARGEST_CODE) * columns, out=c)
            if rest:
                np.add(c, rest[0], out=c)
            if workload["activation"]:
                c[...] = activated(c, workload["activation"], np)

        return {"numpy": product}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The activations quantised by torch, its product of int8, and what it does not fuse; on a CPU in float32."""
        a, b, columns, *rest = inputs
        c = outputs[0]
        sums = torch.empty(c.shape, dtype=torch.int32, device=c.device)

        def layer() -> None:
            wide = a.float()
            largest = wide.abs().amax(dim=-1, keepdim=True)
            codes = torch.round(wide * LARGEST_CODE / torch.where(largest > 0, largest, 1.0))
            scale = largest / LARGEST_CODE
            if a.is_cuda:
                torch._int_mm(codes.to(torch.int8), b.t(), out=sums)
                made = sums * (scale * columns)
            else:
                made = torch.matmul(codes, b.t().float()) * (scale * columns)
            if rest:
                made.add_(rest[0])
            c.copy_(activated(made, workload["activation"], torch))

        return {"torch._int_mm, quantised before" if a.is_cuda else "torch": layer}


OPERATOR = Int8DynamicLinear()
