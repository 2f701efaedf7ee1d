"""Y = softmax(scale X + mask): attention's softmax for those who keep the scores, in one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.errors import InvalidWorkload
from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload

# One over the square root of a head of 64.
SCALE = 0.125


class MaskedSoftmax(Operator):
    """Softmax over the keys of scaled scores, the mask being added, or causal and then not in memory at all."""

    name = "masked_softmax"
    summary = "Y[M,N] = softmax(X[M,N] / 8 + mask) over N; a mask of S rows, added or causal, serves all M"
    axes = (
        Axis("M", "rows: the queries of all heads"),
        Axis("N", "keys"),
        Axis("S", "queries of a head, a divisor of M"),
        Axis("causal", "1: a query, the last at the last key, sees what is before it; 0: adds MASK", 0, (0, 1)),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """Four heads of 256x256 in float32 on a CPU; 64 heads of 2048x2048 in float16 on a GPU, causal."""
        if kind == "llvm":
            return {"M": 1024, "N": 256, "S": 256, "causal": 0, "dtype": "float32"}
        return {"M": 131072, "N": 2048, "S": 2048, "causal": 1, "dtype": "float16"}

    def check(self, workload: Workload) -> None:
        """Heads must be whole, and every query see a key."""
        if workload["M"] % workload["S"]:
            raise InvalidWorkload(
                f"masked_softmax: M={workload['M']} rows are no whole number of heads of S={workload['S']} queries",
                "choose M as a multiple of S",
            )
        if workload["causal"] and workload["S"] > workload["N"]:
            raise InvalidWorkload(
                f"masked_softmax: of S={workload['S']} causal queries the first see none of N={workload['N']} keys",
                "choose N of at least S",
            )

    def workload(self, kind: str = "cuda", dtype: str | None = None, **axes: int) -> Workload:
        """As for every operator; one head where only M is given."""
        if "M" in axes:
            axes.setdefault("S", axes["M"])
        return super().workload(kind, dtype, **axes)

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X, MASK unless causal, and Y."""
        shape, dtype = (workload["M"], workload["N"]), workload.dtype
        x, y = TensorSpec("X", shape, dtype), TensorSpec("Y", shape, dtype, output=True)
        return (x, y) if workload["causal"] else (x, TensorSpec("MASK", (workload["S"], workload["N"]), dtype), y)

    def cost(self, workload: Workload) -> Cost:
        """Seven operations a score that is seen; those once, and the mask and Y once."""
        m, n, s = (workload[axis] for axis in "MNS")
        seen = m // s * (s * n - s * (s - 1) // 2) if workload["causal"] else m * n
        x, *others = self.tensors(workload)
        return Cost(7.0 * seen, x.bytes * seen / (m * n) + sum(t.bytes for t in others))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The definition, in float64."""
        x, *mask = inputs
        m, n, s = (workload[axis] for axis in "MNS")
        scores = xp.reshape(x, (m // s, s, n)) * SCALE
        added = mask[0] if mask else xp.triu(xp.full_like(scores[0], -float("inf")), k=n - s + 1)
        scores = scores + added
        e = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
        return (xp.reshape(e / xp.sum(e, axis=-1, keepdims=True), (m, n)),)

    def reduction_length(self, workload: Workload) -> int:
        """N."""
        return workload["N"]

    def infinite_inputs(self, workload: Workload) -> tuple[str, ...]:
        """-inf masks; a causal row might see nothing else."""
        return () if workload["causal"] else ("MASK",)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """Scaled and masked scores as a stage, then TVM's own softmax, in float32."""
        x, *mask, _ = (te.placeholder(t.shape, t.dtype, name=t.name) for t in self.tensors(workload))
        m, n, s = (workload[axis] for axis in "MNS")

        def scaled(i: Any, j: Any) -> Any:
            value = x[i, j].astype("float32") * SCALE
            if mask:
                return value + mask[0][i % s, j].astype("float32")
            return te.if_then_else(j <= i % s + (n - s), value, te.min_value("float32"))

        soft = topi.nn.softmax(te.compute((m, n), scaled, name="scaled"), axis=-1)
        if workload.dtype != "float32":
            wide = soft
            soft = te.compute((m, n), lambda i, j: wide[i, j].astype(workload.dtype), name="Y")
        return x, *mask, soft

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The passes of a numpy user, each in place."""
        (x, *mask), (y,) = inputs, outputs
        m, n, s = (workload[axis] for axis in "MNS")
        added = mask[0] if mask else np.triu(np.full((s, n), -np.inf, dtype=y.dtype), k=n - s + 1)

        def masked_softmax() -> None:
            np.multiply(x, y.dtype.type(SCALE), out=y)
            np.add(y.reshape(m // s, s, n), added, out=y.reshape(m // s, s, n))
            np.subtract(y, y.max(axis=-1, keepdims=True), out=y)
            np.exp(y, out=y)
            np.divide(y, y.sum(axis=-1, keepdims=True), out=y)

        return {"numpy": masked_softmax}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """Scale and mask in one kernel, torch.softmax in the other, both in place."""
        (x, *mask), y = inputs, outputs[0]
        m, n, s = (workload[axis] for axis in "MNS")
        unseen = torch.full((s, n), -float("inf"), dtype=x.dtype, device=x.device).triu(diagonal=n - s + 1)
        added, heads, out = mask[0] if mask else unseen, x.view(m // s, s, n), y.view(m // s, s, n)

        def call() -> object:
            torch.add(added, heads, alpha=SCALE, out=out)
            return torch.softmax(y, dim=-1, out=y)

        return {"torch": call}


OPERATOR = MaskedSoftmax()
