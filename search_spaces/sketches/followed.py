"""What the Triton sketches of matrix products pass their kernels beside the product's own operands."""

from __future__ import annotations

from search_spaces.operator import ITEMSIZE
from search_spaces.products import Form, Product
from search_spaces.sketches.tiles import capability
from search_spaces.sketches.triton.base import Argument, DescriptorArgument, TensorArgument
from search_spaces.task import Task

# CDNA 3 multiplies another encoding of fp8, without a negative zero.
NVIDIA_ONLY = ("float8_e4m3fn",)
# From where on Triton puts products of a narrow dtype on tensor cores.
FIRST_ARCH = {"int8": 80, "float8_e4m3fn": 89}


def form_of(task: Task) -> Form:
    """How the product of `task` is stored and what follows it."""
    operator = task.operator
    assert isinstance(operator, Product), f"{operator.name} is no matrix product"
    return operator.form(task.workload)


def batch_of(task: Task) -> int:
    """Number of products, 1 where there is no axis for it."""
    return max(1, form_of(task).batch)


def operand_dtype(task: Task) -> str:
    """Dtype of A and B."""
    return task.operator.arithmetic(task.workload)


def deeper(task: Task, *depths: int) -> tuple[int, ...]:
    """Steps along K, given for operands of two bytes, for those of `task`."""
    times = max(1, 2 // ITEMSIZE[operand_dtype(task)])
    return tuple(depth * times for depth in depths)


def needs_narrow(task: Task) -> str | None:
    """Why no tensor core takes the operands' dtype where that is a narrow one, None where one may."""
    dtype, arch = operand_dtype(task), capability(task.hardware.limits)
    if arch is None:
        return f"{task.target.arch} has no matrix cores for {dtype}" if dtype in NVIDIA_ONLY else None
    first = FIRST_ARCH.get(dtype, 0)
    return f"{task.target.arch} has no tensor cores for {dtype}, which came with sm_{first}" if arch < first else None


def follow_arguments(task: Task, block: tuple[int, int] | None = None) -> dict[str, Argument]:
    """Bias, residual and scales, C in the place of what is not there; the residual in blocks by descriptor if asked."""
    form = form_of(task)
    residual = "RESIDUAL" if form.residual else "C"
    shape = (batch_of(task) * task.workload["M"], task.workload["N"])
    moved = TensorArgument(residual) if block is None else DescriptorArgument(residual, shape, block)
    return {
        "bias": TensorArgument("BIAS" if form.bias else "C"),
        "residual": moved,
        "row_scale": TensorArgument("ROW_SCALE" if form.operand else "C"),
        "column_scale": TensorArgument("COLUMN_SCALE" if form.operand else "C"),
    }


def follow_constants(task: Task) -> dict[str, int | float | bool | str]:
    """How B is stored and what follows the product, as the kernels' last constants."""
    form = form_of(task)
    return {
        "BATCH": batch_of(task),
        "TRANS_B": form.trans_b,
        "SCALED": bool(form.operand),
        "BIAS": form.bias,
        "RESIDUAL": form.residual,
        "ACTIVATION": form.activation,
        "GATED": form.gated,
    }


def b_descriptor(task: Task, block_k: int, block_n: int) -> DescriptorArgument:
    """B as it is stored, in blocks of so many steps of K and columns of C."""
    n, k, batch = task.workload["N"], task.workload["K"], batch_of(task)
    if form_of(task).trans_b:
        return DescriptorArgument("B", (batch * n, k), (block_n, block_k))
    return DescriptorArgument("B", (batch * k, n), (block_k, block_n))
