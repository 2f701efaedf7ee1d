"""What operators that are one matrix product share: operands, cost, reference, and what follows the product."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from search_spaces.operator import Axis, Cost, Launch, Operator, TensorSpec, Workload

ACTIVATIONS = ("none", "ReLU", "GELU", "SiLU")
SILU = ACTIVATIONS.index("SiLU")
# GELU in its tanh form, x sigmoid(GELU_SCALE (x + GELU_CUBE x^3)), as cuBLASLt's epilogue and torch's
# `approximate="tanh"` have it.
GELU_SCALE, GELU_CUBE = 2.0 * math.sqrt(2.0 / math.pi), 0.044715
ACTIVATION_AXIS = Axis(
    "activation",
    ", ".join(f"{number}: {name}" for number, name in enumerate(ACTIVATIONS)) + " (GELU in its tanh form)",
    least=0,
    choices=tuple(range(len(ACTIVATIONS))),
)


@dataclass(frozen=True)
class Form:
    """How a product is stored and what follows it, in this order.

    Attributes:
        trans_b: B is stored [N,K].
        bias: A vector over the columns is added.
        activation: Index in `ACTIVATIONS`.
        gated: The activated result is multiplied by the product with a second matrix, stored like B.
        residual: A matrix is added.
        batch: Products of as many pairs of A and B, 0 where there is one and no axis for it.
        operand: Dtype of A and B where it is not the workload's; their product is then scaled, by row and by column.
    """

    trans_b: bool = False
    bias: bool = False
    activation: int = 0
    gated: bool = False
    residual: bool = False
    batch: int = 0
    operand: str = ""

    @property
    def plain(self) -> bool:
        """Whether nothing follows the product."""
        return not (self.bias or self.activation or self.gated or self.residual or self.operand)

    @property
    def batched(self) -> tuple[int, ...]:
        """The axis of the batch, where there is one."""
        return (self.batch,) if self.batch else ()


class Product(Operator):
    """C[M,N] = activation(A[M,K] B + BIAS[N]) (A UP) + RESIDUAL[M,N], of which a workload says what is there.

    Where A and B are of a narrower dtype, A B stands for ROW_SCALE[M] (A B) COLUMN_SCALE[N].
    """

    dtypes: tuple[str, ...] = ("float16", "bfloat16", "float32")

    @abstractmethod
    def form(self, workload: Workload) -> Form:
        """What the workload asks for."""

    def tensors(self, workload: Workload) -> tuple[TensorSpec, ...]:
        """A, B, what else is there of UP, the scales, BIAS and RESIDUAL, and C."""
        m, n, k = (workload[a] for a in "MNK")
        form, dtype = self.form(workload), workload.dtype
        stored = (n, k) if form.trans_b else (k, n)
        narrow = form.operand or dtype
        made = [TensorSpec("A", (*form.batched, m, k), narrow), TensorSpec("B", (*form.batched, *stored), narrow)]
        if form.gated:
            made.append(TensorSpec("UP", stored, dtype))
        if form.operand:
            made += [TensorSpec("ROW_SCALE", (m,), "float32"), TensorSpec("COLUMN_SCALE", (n,), "float32")]
        if form.bias:
            made.append(TensorSpec("BIAS", (n,), dtype))
        if form.residual:
            made.append(TensorSpec("RESIDUAL", (*form.batched, m, n), dtype))
        return (*made, TensorSpec("C", (*form.batched, m, n), dtype, output=True))

    def cost(self, workload: Workload) -> Cost:
        """2 M N K operations a product, what follows left out; each tensor once."""
        m, n, k = (workload[a] for a in "MNK")
        form = self.form(workload)
        products = max(1, form.batch) * (2 if form.gated else 1)
        return Cost(2.0 * m * n * k * products, float(sum(t.bytes for t in self.tensors(workload))))

    def reference(self, workload: Workload, xp: Any, *inputs: Any) -> tuple[Any, ...]:
        """The definition, in float64."""
        form = self.form(workload)
        a, b, *rest = inputs
        c = xp.matmul(a, xp.matrix_transpose(b) if form.trans_b else b)
        up = rest.pop(0) if form.gated else None
        if form.operand:
            c = c * rest.pop(0)[:, None] * rest.pop(0)
        if form.bias:
            c = c + rest.pop(0)
        c = activated(c, form.activation, xp)
        if up is not None:
            c = c * xp.matmul(a, up.T if form.trans_b else up)
        return (c + rest[0],) if form.residual else (c,)

    def reduction_length(self, workload: Workload) -> int:
        """K."""
        return workload["K"]

    def arithmetic(self, workload: Workload) -> str:
        """That of A and B."""
        return self.form(workload).operand or workload.dtype

    def compute(self, workload: Workload, te: Any, topi: Any) -> tuple[Any, ...] | None:
        """One reduction in float32, for int8 in int32, and one stage for what follows; TVM reduces no fp8."""
        form, dtype = self.form(workload), workload.dtype
        if form.operand not in ("", "int8"):
            return None
        given = [te.placeholder(t.shape, t.dtype, name=t.name) for t in self.tensors(workload) if not t.output]
        a, *rest = given
        shape = (*form.batched, workload["M"], workload["N"])
        r = te.reduce_axis((0, workload["K"]), name="k")

        def wide(value: Any) -> Any:
            if value.dtype == "int8":
                return value.astype("int32")
            return value if value.dtype == "float32" else value.astype("float32")

        def product(b: Any, name: str) -> Any:
            def term(i: Any, j: Any, *outer: Any) -> Any:
                right = (*outer, j, r) if form.trans_b else (*outer, r, j)
                return te.sum(wide(a[(*outer, i, r)]) * wide(b[right]), axis=r)

            # TVM names the loops, and so the knobs, by the parameters.
            if form.batched:
                return te.compute(shape, lambda n, i, j: term(i, j, n), name=name)
            return te.compute(shape, lambda i, j: term(i, j), name=name)  # noqa: PLW0108

        if form.plain and dtype == "float32":
            return (*given, product(rest[0], "C"))
        sums = product(rest.pop(0), "C_wide")
        factors = product(rest.pop(0), "C_up") if form.gated else None
        scales = [rest.pop(0), rest.pop(0)] if form.operand else []

        def finished(*at: Any) -> Any:
            value = wide(sums[at])
            if form.operand:
                value = value * scales[0][at[-2]] * scales[1][at[-1]]
            if form.bias:
                value = value + wide(rest[0][at[-1]])
            value = activated(value, form.activation, te)
            if factors is not None:
                value = value * factors[at]
            if form.residual:
                value = value + wide(rest[-1][at])
            return value.astype(dtype)

        return (*given, te.compute(shape, finished, name="C"))

    def numpy_library(
        self, workload: Workload, np: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """numpy.matmul, that is the BLAS numpy was built with, and what follows in place."""
        form = self.form(workload)
        (a, b, *rest), c = inputs, outputs[0]
        up = rest.pop(0) if form.gated else None
        scales = [rest.pop(0), rest.pop(0)] if form.operand else []

        def product() -> None:
            right = np.matrix_transpose(b) if form.trans_b else b
            if not scales:
                np.matmul(a, right, out=c)
            else:
                # The BLAS has products of floats only.
                np.matmul(a.astype(c.dtype), right.astype(c.dtype), out=c)
                np.multiply(c, scales[0][:, None] * scales[1], out=c)
            if form.bias:
                np.add(c, rest[0], out=c)
            if form.activation:
                c[...] = activated(c, form.activation, np)
            if up is not None:
                np.multiply(c, np.matmul(a, up.T if form.trans_b else up), out=c)
            if form.residual:
                np.add(c, rest[-1], out=c)

        return {"numpy": product}

    def torch_library(
        self, workload: Workload, torch: Any, inputs: Sequence[Any], outputs: Sequence[Any]
    ) -> Mapping[str, Launch]:
        """The BLAS (on a GPU cuBLAS), and a kernel in place for each thing that it does not fuse."""
        form = self.form(workload)
        if form.gated:
            return _gated_library(form, torch, inputs, outputs[0])
        if form.operand:
            return _scaled_library(form, torch, inputs, outputs[0])
        (a, b, *rest), c = inputs, outputs[0]
        right = b.mT if form.trans_b else b
        # Added by the product itself: the bias, or the residual where nothing comes between.
        fused = rest[0] if form.bias or (form.residual and not form.activation) else None
        follow = _following(torch, form.activation)

        def product() -> None:
            if fused is None:
                torch.matmul(a, right, out=c)
            else:
                torch.addmm(fused, a, right, out=c)
            follow(c)
            if form.residual and fused is not rest[-1]:
                c.add_(rest[-1])

        def with_epilogue() -> None:
            torch._addmm_activation(rest[0], a, right, use_gelu=form.activation == 2, out=c)
            if form.residual:
                c.add_(rest[-1])

        found: dict[str, Launch] = {"cuBLAS" if a.is_cuda else "torch": product}
        # On a CPU this call's GELU is not the tanh form.
        if a.is_cuda and form.bias and form.activation in (1, 2):
            found["cuBLASLt"] = with_epilogue
        return found


def _gated_library(form: Form, torch: Any, inputs: Sequence[Any], c: Any) -> dict[str, Launch]:
    """Two products and one with both matrices side by side, neither with a bias or residual."""
    a, *sides = inputs
    gate, up = (side.t() if form.trans_b else side for side in sides)
    name = "cuBLAS" if a.is_cuda else "torch"
    joined, n = torch.cat([gate.t(), up.t()]).t(), c.shape[1]
    second, both = torch.empty_like(c), c.new_empty(c.shape[0], 2 * n)
    follow = _following(torch, form.activation)

    def apart() -> None:
        torch.matmul(a, gate, out=c)
        torch.matmul(a, up, out=second)
        follow(c)
        c.mul_(second)

    def together() -> None:
        torch.matmul(a, joined, out=both)
        left, right = both[:, :n], both[:, n:]
        follow(left)
        torch.mul(left, right, out=c)

    return {name: apart, f"{name}, weights joined": together}


def _scaled_library(form: Form, torch: Any, inputs: Sequence[Any], c: Any) -> dict[str, Launch]:
    """Torch's products of int8 and of fp8, and what they do not fuse in kernels of its own; on a CPU one in float32.

    That of fp8 twice: with sums that go to float32 registers on the way, and left to the tensor cores.
    """
    a, b, rows, columns, *rest = inputs
    right = b.t() if form.trans_b else b
    follow = _following(torch, form.activation)

    def finished(product: Any) -> None:
        torch.mul(product, rows[:, None] * columns, out=c)
        if form.bias:
            c.add_(rest[0])
        follow(c)

    def fp8(fast: bool) -> Any:
        bias = rest[0] if form.bias else None
        scales = {"scale_a": rows[:, None], "scale_b": columns[None, :]}
        made = torch._scaled_mm(a, right, **scales, bias=bias, out_dtype=c.dtype, use_fast_accum=fast)
        follow(made)
        return made

    if not a.is_cuda:
        return {"torch": lambda: finished(torch.matmul(a.float(), right.float()))}
    if form.operand == "int8":
        wide = torch.empty(c.shape, dtype=torch.int32, device=c.device)
        return {"torch._int_mm": lambda: finished(torch._int_mm(a, right, out=wide))}
    return {f"torch._scaled_mm, use_fast_accum={fast}": partial(fp8, fast) for fast in (False, True)}


def activated(value: Any, activation: int, xp: Any) -> Any:
    """`value` under the activation with this number, by `abs` and `tanh` of a namespace; `tanh` never overflows."""
    if activation == 1:
        return (value + xp.abs(value)) * 0.5
    if activation == 2:
        return value * (0.5 + 0.5 * xp.tanh(0.5 * GELU_SCALE * (value + GELU_CUBE * value * value * value)))
    if activation == 3:
        return value * (0.5 + 0.5 * xp.tanh(0.5 * value))
    return value


def _following(torch: Any, activation: int) -> Callable[[Any], object]:
    """Torch's activation in place."""
    named: tuple[Callable[[Any], object], ...] = (
        lambda _: None,
        torch.relu_,
        partial(torch.ops.aten.gelu_, approximate="tanh"),
        partial(torch.nn.functional.silu, inplace=True),
    )
    return named[activation]


class ScaledProduct(Product):
    """A quantised linear layer: scales for each token and each output channel, what follows fused.

    Attributes:
        operand: The dtype of A and B.
        wide: The dtype of C by default on a GPU.
    """

    operand: str
    wide: str
    axes = (
        Axis("M", "rows of A and C: tokens"),
        Axis("N", "rows of B: output features"),
        Axis("K", "columns of A and B: input features"),
        ACTIVATION_AXIS,
        Axis("bias", "1: adds BIAS before the activation", least=0, choices=(0, 1)),
    )

    def defaults(self, kind: str) -> Mapping[str, int | str]:
        """With bias: 512 cubed on a CPU, 4096 cubed on a GPU."""
        if kind == "llvm":
            return {"M": 512, "N": 512, "K": 512, "activation": 0, "bias": 1, "dtype": "float32"}
        return {"M": 4096, "N": 4096, "K": 4096, "activation": 0, "bias": 1, "dtype": self.wide}

    def form(self, workload: Workload) -> Form:
        """Products of narrow operands, over weights stored by rows of outputs."""
        return Form(
            trans_b=True,
            bias=bool(workload["bias"]),
            activation=workload["activation"],
            operand=self.operand,
        )
