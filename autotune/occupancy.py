"""How many blocks of a kernel fit on a multiprocessor, from its resources and the arch's limits."""

from __future__ import annotations

from autotune.generators.base import Resources
from search_spaces.hardware import Limits

# By the width of a warp, NVIDIA's and AMD's: the unit in which a warp gets registers, and the shared memory that each
# block has reserved, on NVIDIA from sm_80 on.
_REGISTER_UNITS = {32: 256, 64: 512}
_RESERVED_SHARED = {32: 1024, 64: 0}


def resident_blocks(resources: Resources, limits: Limits) -> int | None:
    """Blocks that a multiprocessor holds at a time; None where the resources are not known."""
    if resources.registers is None or resources.threads is None:
        return None
    warps = -(-resources.threads // limits.warp)
    unit = _REGISTER_UNITS[limits.warp]
    per_warp = -(-resources.registers * limits.warp // unit) * unit
    by_registers = limits.registers_per_sm // (max(1, per_warp) * warps)
    by_shared = limits.shared_per_sm // max(1, (resources.shared_bytes or 0) + _RESERVED_SHARED[limits.warp])
    by_threads = limits.threads_per_sm // (warps * limits.warp)
    return min(by_registers, by_shared, by_threads, limits.blocks_per_sm)


def occupancy(resources: Resources, limits: Limits) -> float | None:
    """Resident warps over the most that a multiprocessor holds; None where the resources are not known."""
    blocks = resident_blocks(resources, limits)
    if blocks is None or resources.threads is None:
        return None
    return blocks * -(-resources.threads // limits.warp) * limits.warp / limits.threads_per_sm
