"""A mixture of experts with the kernel of an inference engine for both products, under one configuration."""

from __future__ import annotations

import math

from search_spaces.installed_text import REQUIRED, parameters_of
from search_spaces.sketches.engines import EngineSketch, engine_tile
from search_spaces.sketches.experts import (
    KERNELS,
    Experts,
    Phase,
    choices,
    first_result,
    most_tiles,
    second_result,
    sorted_choices,
    ungated_result,
)
from search_spaces.sketches.triton.base import (
    Argument,
    Constant,
    ScalarArgument,
    TensorArgument,
    TritonLaunch,
    TypeConstant,
)
from search_spaces.space import Family, Knob, Schedule, Value
from search_spaces.task import Task

KERNEL = "fused_moe_kernel"
_UP, _DOWN = Phase("N", "K", times=2), Phase("K", "N")
# What is not there without quantisation, biases, a second device or an adapter: the kernels' parameters by name.
_ABSENT: dict[str, Constant] = {
    **dict.fromkeys(("a_desc", "b_desc", "b_bias_ptr", "bias_ptr", "a_scale_ptr", "b_scale_ptr", "add_mask_ptr")),
    **dict.fromkeys(("group_n", "group_k"), 0),
    **dict.fromkeys(("use_fp8_w8a8", "use_int8_w8a8", "use_int8_w8a16", "per_channel_quant", "HAS_BIAS"), False),
    **dict.fromkeys(("SWAP_AB", "swap_ab", "c_sorted", "FUSE_ADD_TO_OUTPUT", "MASK_OUTPUT"), False),
    **dict.fromkeys(("FUSE_SUM_ALL_REDUCE", "filter_expert"), False),
    "SPLIT_K": 1,
    "ROUTER_TOPK": 1,
}
# Strides of what is absent.
_NO_STRIDES = ("asm", "ask", "bse", "bsk", "bsn", "bbe", "bbn", "bias_e", "bias_n")


class EngineMoe(EngineSketch, Experts):
    """`fused_moe_kernel` for both products, the engine's own order of kernels around it.

    What sorts, gates and sums are this project's kernels in the place of the engine's compiled ones.
    """

    phases = (_UP, _DOWN)
    others = (KERNELS,)

    def refuses(self, task: Task) -> str | None:
        """Where the engine is not installed, of an unknown version, or multiplies float32 in tf32."""
        if (reason := self.missing() or super().refuses(task)) is not None:
            return reason
        any_tile = Schedule((("sketch", self.name), *self.preferred(task).items()))
        unknown = [name for name, given in self._given(task, any_tile, first=True).items() if given is REQUIRED]
        if unknown:
            return f"this version of {self.package} has a parameter of {KERNEL} that is not known here: {unknown[0]}"
        if task.workload.dtype == "float32":
            return f"{self.package}'s kernel multiplies float32 in tf32; triton.fused_moe_tiled takes it as it is"
        return None

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """What a configuration file can say."""
        return (
            Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_n", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, (32, 64, 128, 256)),
            Knob("num_warps", Family.WARPS, (2, 4, 8)),
            Knob("num_stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5)),
            Knob("group", Family.LOOP_ORDER, (1, 4, 16, 32, 64)),
        )

    def preferred(self, task: Task) -> dict[str, Value]:
        """What vLLM takes where it has no file."""
        rows = task.workload["M"]
        tall = next((block for most, block in ((32, 16), (96, 32), (512, 64)) if rows <= most), 128)
        wide, deep = (64, 128) if rows <= 64 else (128, 64)
        stages, warps = (4 if rows <= 32 else 3), (4 if rows <= 128 else 8)
        group = 16 if rows // task.workload["E"] > 128 else 1
        tile = {"block_m": tall, "block_n": wide, "block_k": deep}
        return {**tile, "num_warps": warps, "num_stages": stages, "group": group}

    def unsorted(self, task: Task) -> bool:
        """Whether the engine takes each choice for a tile of its own; there are then fewer choices than experts."""
        del task
        return False

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The first product."""
        return self._product(task, schedule, first=True)

    def launches(self, task: Task, schedule: Schedule) -> tuple[TritonLaunch, ...]:
        """Sort or count, first product, gate, second product, sum."""
        before = self._counting(task, schedule) if self.unsorted(task) else self.sorting(task, schedule)
        down = self._product(task, schedule, first=False)
        return before, self.launch(task, schedule), self.gating(task), down, self.summing(task)

    def _counting(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel that says that all tiles count."""
        rows = choices(task) * schedule.integer("block_m")
        used = sorted_choices(task, schedule.integer("block_m"))["used"]
        return TritonLaunch({"used": used}, {"ROWS": rows}, (1, 1, 1), 1, 1, kernel=f"{KERNELS}:count")

    def _product(self, task: Task, schedule: Schedule, *, first: bool) -> TritonLaunch:
        given = self._given(task, schedule, first=first)
        columns, _ = (_UP if first else _DOWN).extents(task)
        rows, wide = schedule.integer("block_m"), schedule.integer("block_n")
        return TritonLaunch(
            arguments={name: value for name, value in given.items() if isinstance(value, Argument)},
            constants={name: value for name, value in given.items() if not isinstance(value, Argument)},
            grid=(most_tiles(task, rows) * math.ceil(columns / wide), 1, 1),
            num_warps=schedule.integer("num_warps"),
            num_stages=schedule.integer("num_stages"),
        )

    def _given(self, task: Task, schedule: Schedule, *, first: bool) -> dict[str, Argument | Constant]:
        """Every parameter of the engine's kernel in its order; REQUIRED where it is of a kind unknown here."""
        parameters = parameters_of(self.package, self.file, KERNEL)
        known = {**parameters, **_ABSENT, **self._passed(task, schedule, first=first)}
        return {name: known[name] for name in parameters}

    def _passed(self, task: Task, schedule: Schedule, *, first: bool) -> dict[str, Argument | Constant]:
        """What both engines pass, under their names; integers specialised as at their own launches."""
        wide, deep = (_UP if first else _DOWN).extents(task)
        rows = schedule.integer("block_m")
        strides = {"am": deep, "ak": 1, "be": wide * deep, "bk": 1, "bn": deep, "cm": wide, "cn": 1}
        numbers = {"N": wide, "K": deep, "EM": most_tiles(task, rows) * rows, "num_valid_tokens": choices(task)}
        numbers |= {f"stride_{name}": value for name, value in {**dict.fromkeys(_NO_STRIDES, 0), **strides}.items()}
        kept = sorted_choices(task, rows)
        return {
            "a_ptr": TensorArgument("X") if first else first_result(task),
            "b_ptr": TensorArgument("W1" if first else "W2"),
            "c_ptr": ungated_result(task) if first else second_result(task),
            "topk_weights_ptr": TensorArgument("WEIGHTS"),
            "sorted_token_ids_ptr": None if self.unsorted(task) else kept["rows"],
            "expert_ids_ptr": TensorArgument("IDS") if self.unsorted(task) else kept["experts"],
            "num_tokens_post_padded_ptr": kept["used"],
            **{name: ScalarArgument(value, specialised=True) for name, value in numbers.items()},
            **engine_tile(schedule),
            "naive_block_assignment": self.unsorted(task),
            "MUL_ROUTED_WEIGHT": not first,
            "top_k": task.workload["T"] if first else 1,
            "compute_type": TypeConstant(task.workload.dtype),
            "even_Ks": deep % schedule.integer("block_k") == 0,
        }
