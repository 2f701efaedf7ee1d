"""Y[M,N] = GELU(X) * U + V, element by element, computed in float32."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload

# GELU in its tanh form: x (1 + tanh(GELU_SCALE (x + GELU_CUBE x^3))) / 2, torch's `approximate="tanh"`.
GELU_SCALE, GELU_CUBE = math.sqrt(2.0 / math.pi), 0.044715


class Elementwise(Operator):
    """A chain of elementwise operations in one pass: an activation, a gate and a residual."""

    name = "elementwise"
    summary = "Y[M,N] = GELU(X[M,N]) * U[M,N] + V[M,N] (GELU in its tanh form)"
    axes = (Axis("M", "rows"), Axis("N", "columns"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """1024x1024 in float32 on a CPU, 16384x4096 in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 1024, "N": 1024, "dtype": "float32"}
        return {"M": 16384, "N": 4096, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X, U, V and Y."""
        shape = (workload["M"], workload["N"])
        read = (TensorSpec(name, shape, workload.dtype) for name in "XUV")
        return (*read, TensorSpec("Y", shape, workload.dtype, output=True))

    def cost(self, workload: Workload) -> Cost:
        """The GELU's seven multiplications, two additions and its tanh, and a multiply-add; each tensor once."""
        elements = workload["M"] * workload["N"]
        return Cost(12.0 * elements, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The definition, in float64."""
        x, u, v = inputs
        return (gelu(x, xp.tanh) * u + v,)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """One stage, in float32."""
        shape, dtype = (workload["M"], workload["N"]), workload.dtype
        x, u, v = (te.placeholder(shape, dtype, name=name) for name in "XUV")

        def wide(value: Any) -> Any:
            return value if dtype == "float32" else value.astype("float32")

        def chain(i: Any, j: Any) -> Any:
            made = gelu(wide(x[i, j]), te.tanh) * wide(u[i, j]) + wide(v[i, j])
            return made if dtype == "float32" else made.astype(dtype)

        return x, u, v, te.compute(shape, chain, name="Y")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """One pass an operation, each in place."""
        (x, u, v), y = inputs, outputs[0]

        def chain() -> None:
            np.multiply(x, x, out=y)
            np.multiply(y, GELU_CUBE, out=y)
            np.add(y, 1.0, out=y)
            np.multiply(y, x, out=y)
            np.multiply(y, GELU_SCALE, out=y)
            np.tanh(y, out=y)
            np.add(y, 1.0, out=y)
            np.multiply(y, 0.5, out=y)
            np.multiply(y, x, out=y)
            np.multiply(y, u, out=y)
            np.add(y, v, out=y)

        return {"numpy": chain}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Two kernels, GELU and torch.addcmul, both into the output."""
        (x, u, v), y = inputs, outputs[0]

        def chain() -> object:
            torch.ops.aten.gelu.out(x, approximate="tanh", out=y)
            return torch.addcmul(v, y, u, out=y)

        return {"torch": chain}


def gelu(value: Any, tanh: Callable[[Any], Any]) -> Any:
    """GELU of `value`, written with arithmetic and `tanh` alone."""
    return value * (0.5 + 0.5 * tanh(GELU_SCALE * (value + GELU_CUBE * value * value * value)))


OPERATOR = Elementwise()
