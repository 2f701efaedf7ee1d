"""Matrix product whose steps along K are shared evenly by all programs (stream-K), moved by TMA, from sm_90 on."""

from __future__ import annotations

import math
from dataclasses import replace

from search_spaces.sketches.followed import deeper
from search_spaces.sketches.promotion import NAME, preferred_terms
from search_spaces.sketches.tiles import RESERVED_SHARED, Footprint, power_of_two
from search_spaces.sketches.triton.base import Argument, ScalarArgument, WorkspaceArgument
from search_spaces.sketches.triton.matmul_k_split import FEW_ROWS, few_tiles
from search_spaces.sketches.triton.matmul_tiled import Tile, order, tiles
from search_spaces.sketches.triton.matmul_tma import MatmulTma
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Where the last round of tiles occupies so many of the programs, sharing its steps costs more than it saves.
NEARLY_FULL = 0.9


class MatmulKShares(MatmulTma):
    """Whole tiles first, then each program an equal share of the steps of the rest.

    The last program of a tile adds the pieces in the order of K.
    """

    name = "triton.matmul_k_shares"
    kernel = "search_spaces.kernels.split:stream"
    summary = "programs share the steps of all tiles evenly (stream-K), moved by TMA (sm_90 and later)"
    followed = ("TRANS_B", "SCALED", "BIAS", "RESIDUAL", "ACTIVATION", "PROMOTE")
    tile_knobs = (*MatmulTma.tile_knobs, "swapped")

    def refuses(self, task: Task) -> str | None:
        """Applies where TMA does and C has few tiles."""
        return super().refuses(task) or few_tiles(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Those of the TMA sketch with lower tiles and deeper steps, and how the steps are shared."""
        own = {
            "block_m": Knob("block_m", Family.TILE_SIZES, (16, 32, 64, 128, 256)),
            "block_k": Knob("block_k", Family.TILE_SIZES, deeper(task, 32, 64, 128, 256)),
        }
        *built, way, group = super().knobs(task)
        return (
            *(own.get(knob.name, knob) for knob in built),
            Knob("swapped", Family.LOOP_ORDER, (False, True)),
            Knob("programs_per_sm", Family.PERSISTENCE, (1, 2, 3, 4), runtime=True),
            Knob("shared_rounds", Family.PARALLELISM, (1, 2, 4), runtime=True),
            way,
            group,
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """Those of the TMA sketch; programs find room, and more rounds are shared only where there are more."""
        m, n = task.workload["M"], task.workload["N"]
        limits, sms = task.hardware.limits, task.hardware.model.sms

        def room(*values: int) -> bool:
            *tile, count = values
            return count * (self.shared_bytes(task, self.tile(tile)) + RESERVED_SHARED) <= limits.shared_per_sm

        def rounds(bm: int, bn: int, count: int, shared: int) -> bool:
            return shared == 1 or shared <= math.ceil(m / bm) * math.ceil(n / bn) // (count * sms) + 1

        return (
            *super().constraints(task),
            Constraint(
                f"swaps operands although its tile has more than {FEW_ROWS} rows",
                ("block_m", "swapped"),
                lambda bm, swapped: not swapped or bm <= FEW_ROWS,
            ),
            Constraint(
                "asks for more programs than find room on a multiprocessor",
                (*self.tile_knobs, "programs_per_sm"),
                room,
            ),
            Constraint(
                "shares more rounds of tiles than there are",
                ("block_m", "block_n", "programs_per_sm", "shared_rounds"),
                rounds,
            ),
        )

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program: a whole tile's store overlaps with the loads of what comes after it."""
        operands, store = self.operand_bytes(task, tile), self.store_bytes(task, tile)
        return operands + store if tile.num_stages > 1 else max(operands, store)

    def preferred(self, task: Task) -> dict[str, Value]:
        """Tiles as low as A, two programs a multiprocessor, for few rows; else those of the tutorial."""
        m = task.workload["M"]
        own: dict[str, Value] = {"swapped": False, "programs_per_sm": 1, "shared_rounds": 1}
        if m > FEW_ROWS:
            return {**super().preferred(task), **own}
        (deep,) = deeper(task, 128)
        tall = max(16, power_of_two(m))
        tile = {"block_m": tall, "block_n": 64, "block_k": deep, "num_warps": 4, NAME: preferred_terms(tall)}
        return {**own, **tile, "subtiles": 1, "num_stages": 4, "programs_per_sm": 2, "group": 1}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """So many a multiprocessor, no more than steps."""
        steps = math.ceil(task.workload["K"] / schedule.integer("block_k"))
        return min(tiles(task, schedule) * steps, task.hardware.model.sms * schedule.integer("programs_per_sm"))

    def whole(self, task: Task, schedule: Schedule) -> int:
        """Tiles that one program computes alone: full rounds of them, but the last so many rounds."""
        programs, count = self.programs(task, schedule), tiles(task, schedule)
        rounds, rest = divmod(count, programs)
        shared = schedule.integer("shared_rounds")
        if shared == 1 and rest >= NEARLY_FULL * programs:
            return count
        return max(0, rounds - (shared - 1)) * programs

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """That of a tile, its main loop over a share of the steps where tiles are fewer than programs."""
        made = super().footprint(task, schedule)
        steps = math.ceil(made.steps * min(1.0, tiles(task, schedule) / made.programs))
        return replace(made, steps=steps)

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Those of the TMA sketch, room for two pieces a program, a counter a tile, and how many tiles stay whole."""
        given, ordered = super().arguments(task, schedule), order(schedule)
        whole = self.whole(task, schedule)
        size = schedule.integer("block_m") * schedule.integer("block_n")
        own: dict[str, Argument] = {
            "partial": WorkspaceArgument(2 * self.programs(task, schedule) * size),
            "counters": WorkspaceArgument(max(1, tiles(task, schedule) - whole), "int32"),
        }
        kept = {k: v for k, v in given.items() if k not in ordered}
        return {**kept, **own, **ordered, "whole": ScalarArgument(whole)}

    def own_constants(self, schedule: Schedule) -> dict[str, int]:
        """The pieces of the store, and which operand has the rows."""
        return {**super().own_constants(schedule), "SWAPPED": bool(schedule["swapped"])}


SKETCH = MatmulKShares()
