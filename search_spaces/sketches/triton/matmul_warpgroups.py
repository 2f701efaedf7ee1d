"""Matrix product on Hopper with roles for groups of warps, written in Gluon: copying ahead, multiplying, storing."""

from __future__ import annotations

import math

from search_spaces.operator import ITEMSIZE
from search_spaces.sketches.followed import b_descriptor, follow_arguments, follow_constants, form_of, operand_dtype
from search_spaces.sketches.gluon import needs_wgmma
from search_spaces.sketches.tiles import Footprint, fits_shared, padded, power_of_two
from search_spaces.sketches.triton.base import Argument, DescriptorArgument, ScalarArgument, TritonLaunch
from search_spaces.sketches.triton.matmul_tiled import Tile, order, order_knobs
from search_spaces.sketches.triton.matmul_tma import BARRIER_BYTES, MatmulTma
from search_spaces.space import Constraint, Family, Knob, Schedule, Value
from search_spaces.task import Task

# Groups of four warps that multiply, each its own rows of a tile; one more copies.
MULTIPLYING = 2
WARPS = 4 * (MULTIPLYING + 1)
# Sums that a thread can hold beside what it needs to store them.
MOST_SUMS = 128
# Bytes of a row under the widest swizzle: where blocks share a tile of B, each copies whole slabs of it.
SLAB_BYTES = 128


class MatmulWarpgroups(MatmulTma):
    """Persistent programs of three groups of warps; two programs can share the columns of B that they read."""

    name = "triton.matmul_warpgroups"
    kernel = "search_spaces.kernels.warpgroups:warpgroups"
    summary = "persistent, groups of warps with roles, in Gluon (sm_90)"
    tile_knobs = ("block_m", "block_n", "block_k", "num_stages", "subtiles")
    followed = ("TRANS_B", "SCALED", "BIAS", "RESIDUAL", "ACTIVATION", "GATED")

    def refuses(self, task: Task) -> str | None:
        """Needs wgmma, which only sm_90 has, besides what the TMA sketch needs, and a Triton with Gluon."""
        return super().refuses(task) or needs_wgmma(task)

    def knobs(self, task: Task) -> tuple[Knob, ...]:
        """Tiles, shared memory, how the groups and programs share the work, and the order of tiles."""
        del task
        return (
            Knob("block_m", Family.TILE_SIZES, (128, 256)),
            Knob("block_n", Family.TILE_SIZES, (64, 128, 256)),
            Knob("block_k", Family.TILE_SIZES, (32, 64, 128)),
            Knob("subtiles", Family.SHARED_MEMORY, (1, 2, 4)),
            Knob("num_stages", Family.SHARED_MEMORY, (2, 3, 4, 5, 6, 8)),
            Knob("cluster", Family.PARALLELISM, (1, 2)),
            Knob("lead", Family.PARALLELISM, (0, 1, 2, 3)),
            Knob("even", Family.PERSISTENCE, (False, True), runtime=True),
            *order_knobs(),
            Knob("serpentine", Family.LOOP_ORDER, (False, True), runtime=True),
        )

    def constraints(self, task: Task) -> tuple[Constraint, ...]:
        """What cannot run, and tiles that the shape leaves idle."""
        m, n, k = (task.workload[axis] for axis in "MNK")
        limits, slab = task.hardware.limits, self.slab(task)
        return (
            Constraint("its tile is taller than C", ("block_m",), lambda b: b <= max(128, power_of_two(m))),
            Constraint("its tile is wider than C", ("block_n",), lambda b: b <= max(64, power_of_two(n))),
            Constraint("its tile is deeper than A is wide", ("block_k",), lambda b: b <= max(32, power_of_two(k))),
            Constraint(
                "holds more sums than a thread has registers",
                ("block_m", "block_n"),
                lambda bm, bn: self.sides * bm * bn <= MOST_SUMS * MULTIPLYING * 4 * limits.warp,
            ),
            fits_shared(
                limits,
                self.tile_knobs,
                lambda bm, bn, bk, stages, pieces: self.shared_bytes(task, Tile(bm, bn, bk, WARPS, stages, pieces)),
            ),
            Constraint(
                "has more stages than its main loop can fill",
                ("block_k", "num_stages"),
                lambda bk, stages: stages <= max(2, math.ceil(k / bk)),
            ),
            Constraint(
                "lets blocks share less of B than a slab each",
                ("block_n", "cluster"),
                lambda bn, cluster: bn >= cluster * slab,
            ),
            Constraint(
                "lets blocks share B in parts that are no slab of it",
                ("block_k", "cluster"),
                lambda bk, cluster: cluster == 1 or bk <= slab or not form_of(task).trans_b,
            ),
            Constraint(
                "has more rows in a cluster than C",
                ("block_m", "cluster"),
                lambda bm, cluster: cluster == 1 or bm < m,
            ),
            Constraint(
                "lets one group lead by more than its main loop or its stages allow",
                ("block_k", "num_stages", "lead"),
                lambda bk, stages, lead: lead < min(stages, math.ceil(k / bk)) or lead == 0,
            ),
            Constraint(
                "groups more tiles than C has",
                ("block_m", "block_n", "cluster", "order", "group"),
                lambda bm, bn, cluster, way, group: (
                    group < 2 * math.ceil(m / (bm * cluster) if way == "rows" else n / bn)
                ),
            ),
        )

    def shared_bytes(self, task: Task, tile: Tile) -> int:
        """Shared memory of a program: what is copied ahead, two barriers a stage, and a piece of C a group."""
        strips = (tile.block_m + self.sides * tile.block_n) * tile.block_k
        stage = strips * ITEMSIZE[operand_dtype(task)] + 2 * BARRIER_BYTES
        return tile.num_stages * stage + self.store_bytes(task, tile)

    def slab(self, task: Task) -> int:
        """Elements of a row of A or B under the widest swizzle."""
        return SLAB_BYTES // ITEMSIZE[operand_dtype(task)]

    def preferred(self, task: Task) -> dict[str, Value]:
        """As CUTLASS's kernels for large products: 128x256x64, four stages."""
        del task
        wanted: dict[str, Value] = {"block_m": 128, "block_n": 256, "block_k": 64, "subtiles": 2, "num_stages": 4}
        return {**wanted, "cluster": 1, "lead": 0, "even": False, "group": 8, "serpentine": False}

    def programs(self, task: Task, schedule: Schedule) -> int:
        """One a multiprocessor, no more than tiles; with `even` no more than finish as soon."""
        rows, columns, cluster = self.unit(schedule)
        units = math.ceil(task.workload["M"] / rows) * math.ceil(task.workload["N"] / columns)
        most = task.hardware.model.sms // cluster
        if schedule["even"]:
            most = math.ceil(units / math.ceil(units / most))
        return cluster * min(units, most)

    def unit(self, schedule: Schedule) -> tuple[int, int, int]:
        """A cluster takes tiles that lie below each other."""
        cluster = schedule.integer("cluster")
        return schedule.integer("block_m") * cluster, schedule.integer("block_n"), cluster

    def footprint(self, task: Task, schedule: Schedule) -> Footprint:
        """A tile of C and the strips of A and B that it needs, a part of B's from the other block of a cluster."""
        bm, bn, bk, stages, pieces = map(schedule.integer, self.tile_knobs)
        m, n, k = (task.workload[axis] for axis in "MNK")
        cluster = schedule.integer("cluster")
        return Footprint(
            programs=self.programs(task, schedule),
            warps=WARPS,
            shared_bytes=self.shared_bytes(task, Tile(bm, bn, bk, WARPS, stages, pieces)),
            registers=self.sides * bm * bn / (MULTIPLYING * 4 * task.hardware.limits.warp),
            steps=math.ceil(k / bk),
            intensity=2.0 * self.sides * bm * bn / ((bm + self.sides * bn / cluster) * ITEMSIZE[operand_dtype(task)]),
            padding=padded((m, n, k), (bm * cluster, bn, bk)),
        )

    def arguments(self, task: Task, schedule: Schedule) -> dict[str, Argument]:
        """A, B and C by descriptor, what follows the product by address, and the order of tiles."""
        m, n, k = (task.workload[axis] for axis in "MNK")
        bm, bn, bk = map(schedule.integer, ("block_m", "block_n", "block_k"))
        rows = bm // MULTIPLYING
        right = b_descriptor(task, bk, bn // schedule.integer("cluster"))
        return {
            "a": DescriptorArgument("A", (m, k), (rows, bk)),
            "b": right,
            "up": right,
            "c": DescriptorArgument("C", (m, n), (rows, bn // schedule.integer("subtiles"))),
            **follow_arguments(task),
            **order(schedule),
            "serpentine": ScalarArgument(int(bool(schedule["serpentine"]))),
        }

    def constants(self, task: Task, schedule: Schedule) -> dict[str, int | float | bool | str]:
        """The shape, what the descriptors do not say of the tile, and what follows the product."""
        made: dict[str, int | float | bool | str] = {axis: task.workload[axis] for axis in "MNK"}
        knobs = {"CLUSTER": "cluster", "STAGES": "num_stages", "LEAD": "lead"}
        made.update({name: schedule.integer(knob) for name, knob in knobs.items()})
        made["CHAIN"] = self.chain(task, schedule)
        return {**made, **{name: value for name, value in follow_constants(task).items() if name in self.followed}}

    def chain(self, task: Task, schedule: Schedule) -> int:
        """Steps after which the tensor cores' sums are added to others: all, since they lose nothing."""
        return math.ceil(task.workload["K"] / schedule.integer("block_k"))

    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """The kernel's parameters and grid; the compiler counts the warps of one role and adds the others'."""
        return TritonLaunch(
            arguments=self.arguments(task, schedule),
            constants=self.constants(task, schedule),
            grid=(self.programs(task, schedule), 1, 1),
            num_warps=4,
            num_stages=1,
            cluster=schedule.integer("cluster"),
        )


SKETCH = MatmulWarpgroups()
