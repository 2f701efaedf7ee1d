"""Y[M,N] = each row of X[M,N] less its mean, over its standard deviation, times W[N], plus B[N]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload

# Added to the variance before the root.
EPS = 1e-5


class LayerNorm(Operator):
    """Layer norm over the last axis with weight and bias."""

    name = "layer_norm"
    summary = "Y[M,N] = (X - mean over N) / sqrt(variance over N + eps) * W[N] + B[N]"
    axes = (Axis("M", "rows"), Axis("N", "length of a row"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """1024x1024 in float32 on a CPU, 16384x4096 in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 1024, "N": 1024, "dtype": "float32"}
        return {"M": 16384, "N": 4096, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X, W, B and Y."""
        m, n, dtype = workload["M"], workload["N"], workload.dtype
        return (
            TensorSpec("X", (m, n), dtype),
            TensorSpec("W", (n,), dtype),
            TensorSpec("B", (n,), dtype),
            TensorSpec("Y", (m, n), dtype, output=True),
        )

    def cost(self, workload: Workload) -> Cost:
        """Sum, subtraction, square, sum, scale, weight and bias: seven operations an element; each tensor once."""
        elements = workload["M"] * workload["N"]
        return Cost(7.0 * elements, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The definition, in float64, with the variance of a population."""
        x, w, b = inputs
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(centred * centred, axis=-1, keepdims=True)
        return (centred / xp.sqrt(variance + EPS) * w + b,)

    def reduction_length(self, workload: Workload) -> int:
        """N."""
        return workload["N"]

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Sum, sum of squared deviations and the quotient, in float32: squares of X itself would cancel."""
        m, n, dtype = workload["M"], workload["N"], workload.dtype
        x = te.placeholder((m, n), dtype, name="X")
        w, b = te.placeholder((n,), dtype, name="W"), te.placeholder((n,), dtype, name="B")
        k, d = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="d")

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        total = te.compute((m,), lambda i: te.sum(wide(x[i, k]), axis=k), name="total")
        mean = te.compute((m,), lambda i: total[i] / n, name="mean")
        squares = te.compute(
            (m,), lambda i: te.sum((wide(x[i, d]) - mean[i]) * (wide(x[i, d]) - mean[i]), axis=d), name="squares"
        )
        scale = te.compute((m,), lambda i: te.rsqrt(squares[i] / n + EPS), name="scale")
        y = te.compute(
            (m, n),
            lambda i, j: ((wide(x[i, j]) - mean[i]) * scale[i] * wide(w[j]) + wide(b[j])).astype(dtype),
            name="Y",
        )
        return x, w, b, y

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Mean and squares a pass each without a temporary matrix, the rest in place."""
        (x, w, b), (y,) = inputs, outputs

        def layer_norm() -> None:
            np.subtract(x, x.mean(axis=-1, keepdims=True), out=y)
            squares = np.einsum("ij,ij->i", y, y, dtype=np.float32)
            scale = (1.0 / np.sqrt(squares / workload["N"] + EPS)).astype(y.dtype)
            np.multiply(y, scale[:, None], out=y)
            np.multiply(y, w, out=y)
            np.add(y, b, out=y)

        return {"numpy": layer_norm}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.nn.functional.layer_norm; torch's form with `out=` computes apart and copies."""
        x, w, b = inputs
        norm, shape = torch.nn.functional.layer_norm, (workload["N"],)
        return {"torch": lambda: norm(x, shape, w, b, EPS)}


OPERATOR = LayerNorm()
