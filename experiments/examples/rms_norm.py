"""An operator of your own with a Triton kernel of your own: RMS norm with its weight.

autotune run --op experiments/examples/rms_norm.py:RmsNorm --target cuda -arch=sm_90
autotune run --op experiments/examples/rms_norm.py:RmsNorm --target llvm

One file holds what is computed (`RmsNorm`), how a Triton program computes it (`kernel`, optional) and which knobs that
program has (`Rows`). TVM's sketches need no kernel: they follow from `compute`.
"""

from autotune import (
    Axis,
    Constraint,
    Cost,
    Family,
    Knob,
    Operator,
    Schedule,
    SketchSpace,
    TensorArgument,
    TensorSpec,
    TritonLaunch,
    TritonSketch,
)

try:
    import triton
    import triton.language as tl
except ImportError:  # on a machine without Triton the operator still has its TVM sketches
    triton = None


if triton is not None:

    @triton.jit
    def kernel(x, w, y, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, EPS: tl.constexpr):
        """Normalises ROWS whole rows a program."""
        rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
        columns = tl.arange(0, BLOCK)
        inside = columns < N
        at = rows[:, None].to(tl.int64) * N + columns[None, :]
        row = tl.load(x + at, mask=inside[None, :], other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(row * row, axis=1) / N + EPS)
        weight = tl.load(w + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, (row * scale[:, None] * weight[None, :]).to(y.dtype.element_ty), mask=inside[None, :])


EPS = 1e-6


class Rows(TritonSketch):
    """Some whole rows a program; the knobs are how many, and how many warps."""

    name = "triton.own_rms_norm_rows"
    operator = "own_rms_norm"
    kernel = ":kernel"
    summary = "whole rows in registers, some rows a program"

    def refuses(self, task):
        if triton is None:
            return "triton is not installed"
        return None if task.target.kind == "cuda" else "Triton makes CUDA kernels only"

    def spaces(self, task):
        block = triton.next_power_of_2(task.workload["N"])
        rows = tuple(r for r in (1, 2, 4, 8) if task.workload["M"] % r == 0)
        knobs = (Knob("rows", Family.TILE_SIZES, rows), Knob("warps", Family.WARPS, (1, 2, 4, 8, 16)))
        limit = Constraint(
            "gives a thread more than 64 elements",
            ("rows", "warps"),
            lambda rows, warps: rows * block <= 64 * 32 * warps,
        )
        return (SketchSpace(self.name, knobs, (limit,)),)

    def default(self, task):
        return Schedule((("sketch", self.name), ("rows", 1), ("warps", 16)))

    def launch(self, task, schedule):
        n, rows = task.workload["N"], schedule.integer("rows")
        return TritonLaunch(
            arguments={"x": TensorArgument("X"), "w": TensorArgument("W"), "y": TensorArgument("Y")},
            constants={"N": n, "ROWS": rows, "BLOCK": triton.next_power_of_2(n), "EPS": EPS},
            grid=(task.workload["M"] // rows, 1, 1),
            num_warps=schedule.integer("warps"),
            num_stages=1,
        )


class RmsNorm(Operator):
    """Y[M,N] = X / sqrt(mean(X^2) + eps) * W, row by row."""

    name = "own_rms_norm"
    summary = "Y[M,N] = X[M,N] / rms(X over N) * W[N]"
    axes = (Axis("M", "rows"), Axis("N", "length of a row"))
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind):
        return (
            {"M": 512, "N": 1024, "dtype": "float32"} if kind == "llvm" else {"M": 16384, "N": 4096, "dtype": "float16"}
        )

    def tensors(self, workload):
        m, n, dtype = workload["M"], workload["N"], workload.dtype
        return (
            TensorSpec("X", (m, n), dtype),
            TensorSpec("W", (n,), dtype),
            TensorSpec("Y", (m, n), dtype, output=True),
        )

    def cost(self, workload):
        return Cost(4.0 * workload["M"] * workload["N"], float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload, xp, *inputs):
        x, w = inputs
        return (x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + EPS) * w,)

    def reduction_length(self, workload):
        return workload["N"]

    def compute(self, workload, te, topi):
        m, n = workload["M"], workload["N"]
        if workload.dtype != "float32":
            return None
        x, w = te.placeholder((m, n), name="X"), te.placeholder((n,), name="W")
        k = te.reduce_axis((0, n), name="k")
        square = te.compute((m,), lambda i: te.sum(x[i, k] * x[i, k], axis=k), name="square")
        return x, w, te.compute((m, n), lambda i, j: x[i, j] * te.rsqrt(square[i] / n + EPS) * w[j], name="Y")

    def numpy_library(self, workload, np, inputs, outputs):
        (x, w), (y,) = inputs, outputs
        return {
            "numpy": lambda: np.multiply(x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(EPS)), w, out=y)
        }

    def torch_library(self, workload, torch, inputs, outputs):
        x, w = inputs
        return {"torch": lambda: torch.nn.functional.rms_norm(x, (workload["N"],), w, EPS)}

    def sketches(self):
        return (Rows(),)
