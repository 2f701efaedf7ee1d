"""Y[B,N,M] = X[B,M,N] with its last two axes exchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload


class Transpose(Operator):
    """Transposes of row-major matrices, one or a batch of them."""

    name = "transpose"
    summary = "Y[B,N,M] = X[B,M,N], the last two axes exchanged"
    axes = (Axis("B", "matrices"), Axis("M", "rows of X"), Axis("N", "columns of X"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """One matrix of 1024x1024 in float32 on a CPU, of 16384x4096 in float16 on a GPU."""
        if kind == "llvm":
            return {"B": 1, "M": 1024, "N": 1024, "dtype": "float32"}
        return {"B": 1, "M": 16384, "N": 4096, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X and Y."""
        b, m, n = workload.values
        return TensorSpec("X", (b, m, n), workload.dtype), TensorSpec("Y", (b, n, m), workload.dtype, output=True)

    def cost(self, workload: Workload) -> Cost:
        """No arithmetic: each element's move counts as one operation; X and Y once."""
        b, m, n = workload.values
        return Cost(1.0 * b * m * n, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """A copy in the new order, dense."""
        b, m, n = workload.values
        y = xp.reshape(xp.empty_like(inputs[0]), (b, n, m))
        y[...] = xp.permute_dims(inputs[0], (0, 2, 1))
        return (y,)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """One stage."""
        b, m, n = workload.values
        x = te.placeholder((b, m, n), workload.dtype, name="X")
        return x, te.compute((b, n, m), lambda i, j, k: x[i, k, j], name="Y")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """A copy from a transposed view."""
        turned = inputs[0].swapaxes(1, 2)
        return {"numpy": lambda: np.copyto(outputs[0], turned)}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """A copy from a transposed view."""
        turned = inputs[0].transpose(1, 2)
        return {"torch": lambda: outputs[0].copy_(turned)}


OPERATOR = Transpose()
