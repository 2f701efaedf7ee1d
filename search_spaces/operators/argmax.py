"""Y[M] = where in each row of X[M,N] its largest value is, the first of equals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload


class Argmax(Operator):
    """Index of the largest value over the last axis; as torch and numpy have it, the first where several are equal."""

    name = "argmax"
    summary = "Y[M] = index of the largest value of X[M,N] over N, the first of equals"
    axes = (Axis("M", "rows"), Axis("N", "length of a row"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """1024x1024 in float32 on a CPU, 16384x4096 in float16 on a GPU."""
        if kind == "llvm":
            return {"M": 1024, "N": 1024, "dtype": "float32"}
        return {"M": 16384, "N": 4096, "dtype": "float16"}

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X and the indices Y."""
        m, n = workload["M"], workload["N"]
        return TensorSpec("X", (m, n), workload.dtype), TensorSpec("Y", (m,), "int32", output=True)

    def cost(self, workload: Workload) -> Cost:
        """An operation an element; X and Y once."""
        elements = workload["M"] * workload["N"]
        return Cost(1.0 * elements, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The indices, which float64 holds exactly."""
        return (xp.astype(xp.argmax(inputs[0], axis=-1), inputs[0].dtype),)

    def infinite_inputs(self, workload: Workload) -> tuple[str, ...]:
        """Masked places of X are -inf."""
        return ("X",)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """TOPI's definition, a reduction of pairs."""
        x = te.placeholder((workload["M"], workload["N"]), workload.dtype, name="X")
        return x, topi.argmax(x, axis=-1)

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.argmax."""

        def argmax() -> None:
            outputs[0][...] = np.argmax(inputs[0], axis=-1)

        return {"numpy": argmax}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.argmax, whose indices have 8 bytes."""
        wide = torch.empty(outputs[0].shape, dtype=torch.int64, device=outputs[0].device)
        return {"torch": lambda: torch.argmax(inputs[0], dim=-1, out=wide)}


OPERATOR = Argmax()
