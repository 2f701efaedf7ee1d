"""Y = 2-D convolution of X with the filters F, no bias, no dilation, one group; channels last or channels first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from search_spaces.errors import InvalidWorkload
from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload


class Conv2d(Operator):
    """Convolution as networks mean it (a cross-correlation) with square filters."""

    name = "conv2d"
    summary = "Y[N,P,Q,K] = X[N,H,W,C] convolved with F[K,R,R,C]; with nchw=1 Y[N,K,P,Q], X[N,C,H,W], F[K,C,R,R]"
    axes = (
        Axis("N", "batch"),
        Axis("C", "input channels"),
        Axis("K", "filters, the output channels"),
        Axis("H", "height of the input"),
        Axis("W", "width of the input"),
        Axis("nchw", "1: channels come before height and width", least=0, choices=(0, 1)),
        Axis("R", "height and width of a filter"),
        Axis("stride", "distance of neighbouring outputs in the input"),
        Axis("pad", "zeros on each side of the input", least=0),
    )
    dtypes = ("float16", "bfloat16", "float32")

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """A 3x3 convolution of 56x56 images with 64 channels, as in ResNet-50: one on a CPU, 32 on a GPU."""
        size = {"C": 64, "K": 64, "H": 56, "W": 56, "nchw": 0, "R": 3, "stride": 1, "pad": 1}
        if kind == "llvm":
            return {"N": 1, **size, "H": 28, "W": 28, "dtype": "float32"}
        return {"N": 32, **size, "dtype": "float16"}

    def check(self, workload: Workload) -> None:
        """A filter must fit into the padded input, and padding be smaller than the filter."""
        size, pad = workload["R"], workload["pad"]
        if size > min(workload["H"], workload["W"]) + 2 * pad:
            raise InvalidWorkload(
                f"conv2d: filters of {size}x{size} are larger than the padded input",
                "choose H and W of at least R - 2 pad",
            )
        if pad >= size:
            raise InvalidWorkload(f"conv2d: pad={pad} gives outputs of nothing but zeros", "choose pad below R")

    def extents(self, workload: Workload) -> tuple[int, int]:
        """Height and width of the output."""
        size, stride, pad = (workload[axis] for axis in ("R", "stride", "pad"))
        return (workload["H"] + 2 * pad - size) // stride + 1, (workload["W"] + 2 * pad - size) // stride + 1

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """X, F and Y."""
        n, c, k, h, w = (workload[axis] for axis in "NCKHW")
        size, (p, q) = workload["R"], self.extents(workload)
        shapes = ((n, h, w, c), (k, size, size, c), (n, p, q, k))
        if workload["nchw"]:
            shapes = ((n, c, h, w), (k, c, size, size), (n, k, p, q))
        x, f, y = shapes
        dtype = workload.dtype
        return TensorSpec("X", x, dtype), TensorSpec("F", f, dtype), TensorSpec("Y", y, dtype, output=True)

    def cost(self, workload: Workload) -> Cost:
        """A multiply-add for each output, channel and place of the filter, padding counted; each tensor once."""
        p, q = self.extents(workload)
        terms = self.reduction_length(workload)
        operations = 2.0 * workload["N"] * p * q * workload["K"] * terms
        return Cost(operations, float(sum(t.bytes for t in self.tensors(workload))))

    def reduction_length(self, workload: Workload) -> int:
        """Channels times places of the filter."""
        return workload["C"] * workload["R"] ** 2

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """One product a place of the filter, in float64."""
        x, f = inputs
        if workload["nchw"]:
            x, f = xp.permute_dims(x, (0, 2, 3, 1)), xp.permute_dims(f, (0, 2, 3, 1))
        n, h, w, c = x.shape
        stride, pad, (p, q) = workload["stride"], workload["pad"], self.extents(workload)
        padded = xp.zeros((n, h + 2 * pad, w + 2 * pad, c), dtype=x.dtype, device=x.device)
        padded[:, pad : pad + h, pad : pad + w, :] = x
        total = xp.zeros((n, p, q, workload["K"]), dtype=x.dtype, device=x.device)
        for r in range(workload["R"]):
            for s in range(workload["R"]):
                seen = padded[:, r : r + (p - 1) * stride + 1 : stride, s : s + (q - 1) * stride + 1 : stride, :]
                total += xp.matmul(seen, f[:, r, s, :].T)
        return (xp.permute_dims(total, (0, 3, 1, 2)) if workload["nchw"] else total,)

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...]:
        """The padded input as a stage of its own, then the sum over places and channels, in float32."""
        x, f, _ = (te.placeholder(t.shape, t.dtype, name=t.name) for t in self.tensors(workload))
        n, c, k, h, w = (workload[axis] for axis in "NCKHW")
        size, stride, pad, first = workload["R"], workload["stride"], workload["pad"], workload["nchw"] == 1
        p, q = self.extents(workload)
        r, s = te.reduce_axis((0, size), name="r"), te.reduce_axis((0, size), name="s")
        e = te.reduce_axis((0, c), name="e")

        def wide(value: Any) -> Any:
            return value if workload.dtype == "float32" else value.astype("float32")

        def at(source: Any, outer: Any, i: Any, j: Any, channel: Any) -> Any:
            return source[outer, channel, i, j] if first else source[outer, i, j, channel]

        def inside(b: Any, i: Any, j: Any, channel: Any) -> Any:
            within = te.all(i >= pad, i < h + pad, j >= pad, j < w + pad)
            return te.if_then_else(within, at(x, b, i - pad, j - pad, channel), te.const(0, workload.dtype))

        padded = te.compute((n, h + 2 * pad, w + 2 * pad, c), inside, name="padded")

        def total(b: Any, i: Any, j: Any, o: Any) -> Any:
            value = padded[b, i * stride + r, j * stride + s, e]
            return te.sum(wide(value) * wide(at(f, o, r, s, e)), axis=[r, s, e])

        shape = (n, k, p, q) if first else (n, p, q, k)
        name = "Y" if workload.dtype == "float32" else "Y_wide"
        y = te.compute(shape, (lambda b, o, i, j: total(b, i, j, o)) if first else total, name=name)
        if workload.dtype != "float32":
            summed = y
            y = te.compute(shape, lambda *index: summed[index].astype(workload.dtype), name="Y")
        return x, f, y

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """One product of all windows with all filters, the windows being a view of the padded input."""
        (x, f), y = inputs, outputs[0]
        size, stride, pad, first = workload["R"], workload["stride"], workload["pad"], workload["nchw"] == 1
        sides = (2, 3) if first else (1, 2)
        widths = [(pad, pad) if axis in sides else (0, 0) for axis in range(4)]
        form = "nchwrs,kcrs->nkhw" if first else "nhwcrs,krsc->nhwk"

        def conv2d() -> None:
            windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, widths), (size, size), axis=sides)
            windows = windows[:, :, ::stride, ::stride] if first else windows[:, ::stride, ::stride]
            np.copyto(y, np.einsum(form, windows, f, optimize=True))

        return {"numpy": conv2d}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """torch.nn.functional.conv2d with cuDNN's own benchmark on; channels last as torch's layout of that name."""
        x, f = inputs
        convolve = torch.nn.functional.conv2d
        stride, pad, last = workload["stride"], workload["pad"], not workload["nchw"]
        if last:
            x, f = x.permute(0, 3, 1, 2), f.permute(0, 3, 1, 2)
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = False

        def call() -> object:
            y = convolve(x, f, stride=stride, padding=pad)
            return y.permute(0, 2, 3, 1) if last else y

        return {"cuDNN" if x.is_cuda else "torch": call}


OPERATOR = Conv2d()
