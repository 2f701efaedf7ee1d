"""Y[M,N] = each row of X[M,N] over its root mean square, times W[N]; on request of X + R, which is written too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload

# Added to the mean square before the root.
EPS = 1e-6


class RmsNorm(Operator):
    """RMS norm over the last axis with its weight, and with the residual add before it where asked for."""

    name = "rms_norm"
    summary = "Y[M,N] = X / sqrt(mean of X^2 over N + eps) * W[N], or that of S = X + R, with S"
    axes = (
        Axis("M", "rows"),
        Axis("N", "length of a row"),
        Axis("residual", "1: adds R to X first, and writes the sum too", least=0, choices=(0, 1)),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """1024x1024 in float32 on a CPU, 16384x4096 in float16 on a GPU, without the residual."""
        if kind == "llvm":
            return {"M": 1024, "N": 1024, "residual": 0, "dtype": "float32"}
        return {"M": 16384, "N": 4096, "residual": 0, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X, W and Y; with the residual X, W, R, Y and S."""
        shape, dtype = (workload["M"], workload["N"]), workload.dtype
        x, w = TensorSpec("X", shape, dtype), TensorSpec("W", (workload["N"],), dtype)
        y = TensorSpec("Y", shape, dtype, output=True)
        if not workload["residual"]:
            return x, w, y
        return x, w, TensorSpec("R", shape, dtype), y, TensorSpec("S", shape, dtype, output=True)

    def cost(self, workload: Workload) -> Cost:
        """Square, sum, scale and weight: four operations an element, the residual add a fifth; each tensor once."""
        operations = (4.0 + workload["residual"]) * workload["M"] * workload["N"]
        return Cost(operations, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The definition, in float64."""
        x, w, *residual = inputs
        total = x + residual[0] if residual else x
        y = total / xp.sqrt(xp.mean(total * total, axis=-1, keepdims=True) + EPS) * w
        return (y, total) if residual else (y,)

    def reduction_length(self, workload: Workload) -> int:
        """N."""
        return workload["N"]

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Sum of squares, its root a row, and the quotient, in float32; with the residual those of S as written."""
        m, n, dtype = workload["M"], workload["N"], workload.dtype
        x, w = te.placeholder((m, n), dtype, name="X"), te.placeholder((n,), dtype, name="W")
        k = te.reduce_axis((0, n), name="k")

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        source = x
        if workload["residual"]:
            r = te.placeholder((m, n), dtype, name="R")
            source = te.compute((m, n), lambda i, j: (wide(x[i, j]) + wide(r[i, j])).astype(dtype), name="S")
        squares = te.compute((m,), lambda i: te.sum(wide(source[i, k]) * wide(source[i, k]), axis=k), name="squares")
        scale = te.compute((m,), lambda i: te.rsqrt(squares[i] / n + EPS), name="scale")
        y = te.compute((m, n), lambda i, j: (wide(source[i, j]) * scale[i] * wide(w[j])).astype(dtype), name="Y")
        return (x, w, r, y, source) if workload["residual"] else (x, w, y)

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The sum of squares in one pass without a temporary matrix, then two products in place."""
        (x, w, *residual), y = inputs, outputs[0]
        total = outputs[1] if residual else x

        def rms_norm() -> None:
            if residual:
                np.add(x, residual[0], out=total)
            squares = np.einsum("ij,ij->i", total, total, dtype=np.float32)
            scale = (1.0 / np.sqrt(squares / workload["N"] + EPS)).astype(y.dtype)
            np.multiply(total, scale[:, None], out=y)
            np.multiply(y, w, out=y)

        return {"numpy": rms_norm}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.nn.functional.rms_norm, one kernel on a GPU; before it, with the residual, torch.add into S."""
        x, w, *residual = inputs
        norm, shape = torch.nn.functional.rms_norm, (workload["N"],)
        if not residual:
            return {"torch": lambda: norm(x, shape, w, EPS)}
        (r,), total = residual, outputs[1]
        return {"torch": lambda: norm(torch.add(x, r, out=total), shape, w, EPS)}


OPERATOR = RmsNorm()
