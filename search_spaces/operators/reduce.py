"""Y[M] = sum or maximum of each row of X[M,N], computed in float32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload


class Reduce(Operator):
    """Reduction over the last axis."""

    name = "reduce"
    summary = "Y[M] = sum or maximum of X[M,N] over N"
    axes = (
        Axis("M", "rows"),
        Axis("N", "length of a row"),
        Axis("maximum", "1: the largest value of a row, 0: its sum", least=0, choices=(0, 1)),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """Sums of 1024x1024 in float32 on a CPU, of 16384x4096 in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 1024, "N": 1024, "maximum": 0, "dtype": "float32"}
        return {"M": 16384, "N": 4096, "maximum": 0, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X and Y."""
        m, n, dtype = workload["M"], workload["N"], workload.dtype
        return TensorSpec("X", (m, n), dtype), TensorSpec("Y", (m,), dtype, output=True)

    def cost(self, workload: Workload) -> Cost:
        """An operation an element; X and Y once."""
        elements = workload["M"] * workload["N"]
        return Cost(1.0 * elements, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The sums or maxima in float64."""
        reduced = xp.max if workload["maximum"] else xp.sum
        return (reduced(inputs[0], axis=-1),)

    def reduction_length(self, workload: Workload) -> int:
        """N; a maximum sums nothing."""
        return 1 if workload["maximum"] else workload["N"]

    def infinite_inputs(self, workload: Workload) -> tuple[str, ...]:
        """Masked places of X are -inf where the maximum is asked for."""
        return ("X",) if workload["maximum"] else ()

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """One reduction, in float32 for narrower dtypes."""
        m, n, dtype = workload["M"], workload["N"], workload.dtype
        x = te.placeholder((m, n), dtype, name="X")
        k = te.reduce_axis((0, n), name="k")
        reduced = te.max if workload["maximum"] else te.sum
        if dtype == "float32":
            return x, te.compute((m,), lambda i: reduced(x[i, k], axis=k), name="Y")
        wide = te.compute((m,), lambda i: reduced(x[i, k].astype("float32"), axis=k), name="Y_wide")
        return x, te.compute((m,), lambda i: wide[i].astype(dtype), name="Y")

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.sum or numpy.max."""
        reduced = np.max if workload["maximum"] else np.sum
        return {"numpy": lambda: reduced(inputs[0], axis=-1, out=outputs[0])}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.sum or torch.amax."""
        reduced = torch.amax if workload["maximum"] else torch.sum
        return {"torch": lambda: reduced(inputs[0], dim=-1, out=outputs[0])}


OPERATOR = Reduce()
