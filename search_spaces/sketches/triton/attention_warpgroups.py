"""Attention on Hopper with roles for groups of warps, written in Gluon: copying ahead, and two that take turns."""

from __future__ import annotations

import math
from collections.abc import Mapping

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.gluon import needs_wgmma
from search_spaces.sketches.tiles import RESERVED_SHARED, Footprint, fits_shared, power_of_two
from search_spaces.sketches.triton.attention_descriptors import AttentionDescriptors
from search_spaces.sketches.triton.attention_pointers import masking, reach_of, width
from search_spaces.sketches.triton.base import Argument, DescriptorArgument, ScalarArgument, TritonLaunch
from search_spaces.sketches.triton.matmul_tma import BARRIER_BYTES
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Groups of four warps that multiply, each its own half of a tile's queries; one more copies.
MULTIPLYING = 2
WARPS = 4 * (MULTIPLYING + 1)
# By the programs that share a multiprocessor: the register cap of a program, what of it a thread gets that multiplies,
# and how many sums, scores and weights it can then hold.
REGISTERS: Mapping[int, tuple[int | None, int, int]] = {1: (None, 240, 208), 2: (80, 104, 64)}


class AttentionWarpgroups(AttentionDescriptors):
    """Persistent programs of two groups of warps, each with its half of a tile's queries, and a warp that copies."""

    name = "triton.attention_warpgroups"
    kernel = "search_spaces.kernels.attention_warpgroups:warpgroups"
    summary = "FlashAttention-3: persistent, groups of warps with roles, in Gluon (sm_90)"

    def refuses(self, task: Task) -> str | None:
        """Needs wgmma, which only sm_90 has, besides what the TMA sketch needs, and a Triton with Gluon."""
        return super().refuses(task) or needs_wgmma(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Blocks, registers, shared memory, turns of the groups, and which program takes which tiles."""
        del task
        return (
            Knob("block_m", Family.TILE_SIZES, (128, 256)),
            Knob("block_n", Family.TILE_SIZES, (32, 64, 128, 256)),
            Knob("resident", Family.REGISTERS, tuple(REGISTERS)),
            Knob("query_tiles", Family.SHARED_MEMORY, (1, 2)),
            Knob("num_stages", Family.SHARED_MEMORY, (2, 3, 4, 5, 6)),
            Knob("turns", Family.PARALLELISM, (False, True)),
            Knob("persistent", Family.PERSISTENCE, (False, True), runtime=True),
            Knob("heads", Family.LOOP_ORDER, (1, 2, 4, 8, 16, 32, 64, 128), runtime=True),
            Knob("query_blocks", Family.LOOP_ORDER, ("ascending", "descending"), runtime=True),
            Knob("serpentine", Family.LOOP_ORDER, (False, True), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and blocks, stages and orders that the shape leaves idle."""
        limits, s, heads = task.hardware.limits, task.workload["S"], task.workload["B"] * task.workload["H"]
        head = width(task)
        return (
            Constraint(
                "its block of queries is longer than the sequence",
                ("block_m",),
                lambda b: b <= max(128, power_of_two(s)),
            ),
            Constraint(
                "its block of keys is longer than the sequence", ("block_n",), lambda b: b <= max(32, power_of_two(s))
            ),
            Constraint(
                "holds more values across its main loop than a thread has registers",
                ("block_m", "block_n", "resident"),
                lambda bm, bn, resident: self.values(head, bm, bn) <= REGISTERS[resident][2],
            ),
            fits_shared(
                limits,
                ("block_m", "block_n", "query_tiles", "num_stages"),
                lambda *values: self.shared_bytes(task, *values),
            ),
            Constraint(
                "needs more shared memory than is left beside another program",
                ("resident", "block_m", "block_n", "query_tiles", "num_stages"),
                lambda resident, *values: (
                    resident * (self.shared_bytes(task, *values) + RESERVED_SHARED) <= limits.shared_per_sm
                ),
            ),
            Constraint(
                "has more stages than its main loop can fill",
                ("block_n", "num_stages"),
                lambda bn, stages: stages <= max(2, math.ceil(s / bn)),
            ),
            Constraint("takes more heads at a time than there are", ("heads",), lambda h: h < 2 * heads),
            Constraint(
                "turns round where there is one round",
                ("persistent", "serpentine"),
                lambda persistent, serpentine: persistent or not serpentine,
            ),
        )

    def values(self, head: int, block_m: int, block_n: int) -> float:
        """Values of a thread: the sums, the scores, and the weights at half their size."""
        return block_m * (head + 1.5 * block_n) / (MULTIPLYING * 128)

    def shared_bytes(self, task: Task, block_m: int, block_n: int, query_tiles: int, stages: int) -> int:
        """Shared memory of a program: tiles of queries, and keys and values copied ahead, with their barriers."""
        row = width(task) * ITEMSIZE[task.workload.dtype]
        stage = 2 * (block_n * row + 2 * BARRIER_BYTES)
        return query_tiles * (block_m * row + 2 * BARRIER_BYTES) + stages * stage

    def preferred(self, task: Task) -> dict[str, Value]:
        """As FlashAttention-3: 128 queries, 128 keys (64 for large heads), two stages, the longest tiles first."""
        wanted: dict[str, Value] = {"block_m": 128, "block_n": 128 if width(task) <= 128 else 64}
        wanted.update(resident=1, query_tiles=2 if width(task) <= 128 else 1, num_stages=2)
        causal = reach_of(task) is not None
        order: dict[str, Value] = {"heads": 1, "query_blocks": "descending" if causal else "ascending"}
        return {**wanted, "turns": True, "persistent": True, **order, "serpentine": causal}

    def tiles(self, task: Task, schedule: Schedule) -> int:
        """Tiles that the programs share."""
        blocks = math.ceil(task.workload["S"] / schedule.integer("block_m"))
        return blocks * task.workload["B"] * task.workload["H"]

    def programs(self, task: Task, schedule: Schedule) -> int:
        """As many as are resident, no more than tiles; or one a tile."""
        tiles = self.tiles(task, schedule)
        return min(tiles, schedule.integer("resident") * task.hardware.model.sms) if schedule["persistent"] else tiles

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A tile of queries against the keys that it sees."""
        bm, bn, slots, stages = map(schedule.integer, ("block_m", "block_n", "query_tiles", "num_stages"))
        needed, visited = self.pairs(task, bm, bn)
        programs = self.programs(task, schedule)
        return Footprint(
            programs=programs,
            warps=WARPS,
            shared_bytes=self.shared_bytes(task, bm, bn, slots, stages),
            registers=self.values(width(task), bm, bn),
            steps=math.ceil(self.tiles(task, schedule) / programs) * math.ceil(task.workload["S"] / bn),
            intensity=2.0 * bm / ITEMSIZE[task.workload.dtype],
            padding=max(0.0, 1.0 - needed / visited),
        )

    def derived(self, task: Task, schedule: Schedule) -> dict[str, float]:
        """The footprint's features, and whether the programs stay."""
        made = self.footprint(task, schedule).features(task.hardware)
        return {**made, "persistent": float(bool(schedule["persistent"]))}

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """Q, K, V and O by descriptor, and the order of tiles."""
        batch, heads, groups, s, d = (task.workload[axis] for axis in "BHGSD")
        queries = (1, schedule.integer("block_m") // MULTIPLYING, width(task))
        keys = (1, schedule.integer("block_n"), width(task))
        return {
            "q": DescriptorArgument("Q", (batch * heads, s, d), queries),
            "k": DescriptorArgument("K", (batch * groups, s, d), keys),
            "v": DescriptorArgument("V", (batch * groups, s, d), keys),
            "o": DescriptorArgument("O", (batch * heads, s, d), queries),
            "group": ScalarArgument(schedule.integer("heads")),
            "descending": ScalarArgument(int(schedule["query_blocks"] == "descending")),
            "serpentine": ScalarArgument(int(bool(schedule["serpentine"]))),
        }

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, which keys a query sees, and what the descriptors do not say of the tile."""
        made: dict[str, int | float | bool | str] = {axis: task.workload[axis] for axis in "BHGS"}
        made.update(masking(task))
        made.update(SLOTS=schedule.integer("query_tiles"), STAGES=schedule.integer("num_stages"))
        registers = REGISTERS[schedule.integer("resident")][1]
        return {**made, "PINGPONG": bool(schedule["turns"]), "REGISTERS": registers}

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid; the compiler counts the warps of one role and adds the others'."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=4,
            num_stages=1,
            maxnreg=REGISTERS[schedule.integer("resident")][0],
        )


SKETCH = AttentionWarpgroups()
