"""C[M,N] = (A[M,K] A_SCALE[M,K/128]) @ (B[N,K] B_SCALE[N/128,K/128])^T of fp8 (e4m3): scales by block of 128."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload

# Values of a row of A, and rows and columns of B, that share a scale, as checkpoints of quantised models have them.
BLOCK = 128
_OPERAND = "float8_e4m3fn"


def blocks(extent: int) -> int:
    """Scales along an axis, the last one for what is left."""
    return -(-extent // BLOCK)


class BlockFp8Matmul(Operator):
    """A linear layer whose weights came with a scale for each square of them, and whose tokens get one a piece of row.

    The scales change along K, so that no sum over all of K can be scaled at the end.
    """

    name = "block_fp8_matmul"
    summary = "C[M,N] = A[M,K] @ B[N,K]^T of fp8 (e4m3), a scale for each 128 of a row of A and each 128 x 128 of B"
    axes = (
        Axis("M", "rows of A and C: tokens"),
        Axis("N", "rows of B: output features"),
        Axis("K", "columns of A and B: input features"),
    )
    dtypes = ("bfloat16", "float16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """512 cubed in float32 on a CPU; 64 tokens of a 7168-wide model in bfloat16 on a GPU."""
        if kind == "llvm":
            return {"M": 512, "N": 512, "K": 512, "dtype": "float32"}
        return {"M": 64, "N": 2048, "K": 7168, "dtype": "bfloat16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """A, B, their scales and C."""
        m, n, k = workload.values
        return (
            TensorSpec("A", (m, k), _OPERAND),
            TensorSpec("B", (n, k), _OPERAND),
            TensorSpec("A_SCALE", (m, blocks(k)), "float32"),
            TensorSpec("B_SCALE", (blocks(n), blocks(k)), "float32"),
            TensorSpec("C", (m, n), workload.dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """2 M N K operations, scaling left out; each tensor once."""
        m, n, k = workload.values
        return Cost(2.0 * m * n * k, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The product of the scaled matrices, in float64."""
        a, b, a_scale, b_scale = inputs
        return (xp.matmul(*_scaled(workload, xp, a, b, a_scale, b_scale)),)

    def reduction_length(self, workload: Workload) -> int:
        """K."""
        return workload["K"]

    def arithmetic(self, workload: Workload) -> str:
        """That of A and B."""
        return _OPERAND

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.matmul of matrices scaled beforehand."""
        left, right = _scaled(workload, np, *(x.astype(outputs[0].dtype) for x in inputs))
        return {"numpy, scaled beforehand": lambda: np.matmul(left, right, out=outputs[0])}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The BLAS on matrices that were scaled and widened to C's dtype beforehand: twice the bytes, no scales."""
        wide = [x.to(torch.float32) for x in inputs]
        left, right = (x.to(outputs[0].dtype) for x in _scaled(workload, _Repeating(torch), *wide))
        name = "cuBLAS" if left.is_cuda else "torch"
        return {f"{name}, scaled beforehand": lambda: torch.matmul(left, right, out=outputs[0])}


class _Repeating:
    """Torch's `repeat_interleave` under the array standard's name."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def repeat(self, values: Any, times: int, *, axis: int) -> Any:
        return self._torch.repeat_interleave(values, times, dim=axis)


def _scaled(workload: Workload, xp: Any, a: Any, b: Any, a_scale: Any, b_scale: Any) -> tuple[Any, Any]:
    """A and the transpose of B, each element times its block's scale."""
    n, k = workload["N"], workload["K"]
    rows = xp.repeat(b_scale, BLOCK, axis=0)[:n, :]
    return a * xp.repeat(a_scale, BLOCK, axis=1)[:, :k], (b * xp.repeat(rows, BLOCK, axis=1)[:, :k]).T


OPERATOR = BlockFp8Matmul()
