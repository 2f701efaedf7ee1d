"""How long the tensor cores alone sum a product: a knob where they keep fewer bits than float32 has."""

from __future__ import annotations

from collections.abc import Callable

from search_spaces.sketches.followed import operand_dtype
from search_spaces.sketches.tiles import warp_group_product
from search_spaces.space import Constraint, Family, Knob, Schedule
from search_spaces.task import Task

# Where wgmma adds the products of this dtype to its sums with about 14 bits: DeepSeek-AI, DeepSeek-V3 Technical Report,
# 2024, section 3.3.2. Products of fewer rows or of two warps Triton computes there in float16, which loses nothing.
SHORT_SUMS = {"float8_e4m3fn": "sm_90"}
# Terms of K that one instruction sums, and up to which it may go on.
TERMS = (32, 64, 128, 256)
# Of so many terms the tensor cores' sums are precise enough alone: errors grow with their number, and on an H200 those
# of 4096 terms were twice what a bfloat16 result may be off.
LONGEST = 1024
NAME = "promote"
# The report's.
PREFERRED_TERMS = 128
# Rows and columns of one instruction's sums, at most, and threads that hold them.
ROWS, COLUMNS, THREADS = 64, 256, 128


def sums_short(task: Task) -> bool:
    """Whether long sums on the tensor cores are imprecise for the operands of `task`."""
    return SHORT_SUMS.get(operand_dtype(task)) == task.hardware.limits.arch


def too_short(task: Task) -> str | None:
    """Why no sum of wgmma is precise enough for the result, None where one may be."""
    if sums_short(task) and task.workload.dtype == "float32":
        return f"wgmma adds products of {operand_dtype(task)} with about 14 bits, too few for a float32 result"
    return None


def promotion_knobs(task: Task) -> tuple[Knob, ...]:
    """After how many terms the sums of the tensor cores are added to float32 registers, 0 for never."""
    if not sums_short(task) or too_short(task) is not None:
        return ()
    return (Knob(NAME, Family.REGISTERS, (0, *TERMS)),)


def promotion_constraints(
    task: Task, knobs: tuple[str, ...], product: Callable[..., tuple[int, int]]
) -> tuple[Constraint, ...]:
    """No interval longer than a step and none without wgmma; no wgmma where it cannot be precise enough.

    Args:
        task: The task.
        knobs: Those that `product` takes.
        product: Rows of the first operand, and warps.
    """
    if not sums_short(task):
        return ()
    limits, dtype = task.hardware.limits, operand_dtype(task)

    def on_wgmma(*values: int) -> bool:
        return warp_group_product(limits, dtype, *product(*values))

    if (reason := too_short(task)) is not None:
        return (Constraint(f"runs where {reason}", knobs, lambda *values: not on_wgmma(*values)),)
    return (
        Constraint("promotes sums after more terms than a step has", ("block_k", NAME), lambda bk, terms: terms <= bk),
        long_sums_leave(task, knobs, on_wgmma),
        Constraint(
            "promotes sums that no wgmma makes",
            (*knobs, NAME),
            lambda *values: values[-1] == 0 or on_wgmma(*values[:-1]),
        ),
    )


def long_sums_leave(
    task: Task, knobs: tuple[str, ...] = (), on_wgmma: Callable[..., bool] = lambda *_: True
) -> Constraint:
    """No sums of more terms than are precise enough that never leave the tensor cores.

    Args:
        task: The task.
        knobs: Those that `on_wgmma` takes.
        on_wgmma: Whether the sums are wgmma's.
    """
    short = task.workload["K"] <= LONGEST
    return Constraint(
        f"leaves sums of more than {LONGEST} terms to wgmma, which adds with about 14 bits",
        (*knobs, NAME),
        lambda *values: values[-1] > 0 or short or not on_wgmma(*values[:-1]),
    )


def preferred_terms(rows: int) -> int:
    """The knob's value for tiles of so many rows: Triton takes no wgmma for fewer than an instruction's."""
    return PREFERRED_TERMS if rows >= ROWS else 0


def promoted_terms(schedule: Schedule) -> int:
    """The kernels' constant for the knob."""
    return schedule.integer(NAME) if NAME in schedule.knobs else 0


def unpromoted_sums(schedule: Schedule, rows: int, columns: int, warps: int) -> float:
    """Sums that a thread holds beside those of its tile: of one instruction, where they are promoted."""
    if promoted_terms(schedule) == 0:
        return 0.0
    across = max(1, warps * 32 // THREADS // (rows // ROWS))
    return ROWS * min(COLUMNS, columns // across) / THREADS
