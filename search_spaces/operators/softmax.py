"""Y[M,N] = softmax of each row of X[M,N], computed in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload


class Softmax(Operator):
    """Softmax over the last axis."""

    name = "softmax"
    summary = "Y[M,N] = softmax(X[M,N]) over N"
    axes = (Axis("M", "rows"), Axis("N", "length of a row"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """1024x1024 in float32 on a CPU, 16384x4096 in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 1024, "N": 1024, "dtype": "float32"}
        return {"M": 16384, "N": 4096, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X and Y."""
        shape = (workload["M"], workload["N"])
        return TensorSpec("X", shape, workload.dtype), TensorSpec("Y", shape, workload.dtype, output=True)

    def cost(self, workload: Workload) -> Cost:
        """Maximum, subtraction, exponential, sum and division: five operations an element; X and Y once."""
        elements = workload["M"] * workload["N"]
        return Cost(5.0 * elements, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The row-wise softmax in float64, shifted by the row's maximum."""
        (x,) = inputs
        e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
        return (e / xp.sum(e, axis=-1, keepdims=True),)

    def reduction_length(self, workload: Workload) -> int:
        """N."""
        return workload["N"]

    def infinite_inputs(self, workload: Workload) -> tuple[str, ...]:
        """Masked places of X are -inf."""
        return ("X",)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """TVM's own softmax, in float32 for narrower dtypes."""
        x = te.placeholder((workload["M"], workload["N"]), workload.dtype, name="X")
        if workload.dtype == "float32":
            return x, topi.nn.softmax(x, axis=-1)
        wide = te.compute(x.shape, lambda i, j: x[i, j].astype("float32"), name="X_wide")
        soft = topi.nn.softmax(wide, axis=-1)
        return x, te.compute(x.shape, lambda i, j: soft[i, j].astype(workload.dtype), name="Y")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The three passes of a numpy user, each in place."""
        (x,), (y,) = inputs, outputs

        def softmax() -> None:
            np.subtract(x, x.max(axis=-1, keepdims=True), out=y)
            np.exp(y, out=y)
            np.divide(y, y.sum(axis=-1, keepdims=True), out=y)

        return {"numpy": softmax}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.softmax."""
        return {"torch": lambda: torch.softmax(inputs[0], dim=-1, out=outputs[0])}


OPERATOR = Softmax()
