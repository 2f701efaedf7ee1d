"""Occupancy by the rules of each maker."""

import pytest

from autotune.generators.base import Resources
from autotune.occupancy import occupancy, resident_blocks
from search_spaces.amd import AMD_LIMITS
from search_spaces.hardware import cuda_limits


@pytest.mark.parametrize(
    ("limits", "resources", "blocks"),
    [
        # 64 registers of 256 threads are a quarter of the file; shared memory has 1 KiB reserved a block.
        (cuda_limits("sm_90"), Resources(registers=64, shared_bytes=0, spill_bytes=0, threads=256), 4),
        (cuda_limits("sm_90"), Resources(registers=32, shared_bytes=113 * 1024, spill_bytes=0, threads=128), 2),
        (cuda_limits("sm_90"), Resources(registers=16, shared_bytes=0, spill_bytes=0, threads=1024), 2),
        # Registers are given in units of 8 a thread, and nothing is reserved.
        (AMD_LIMITS["gfx942"], Resources(registers=121, shared_bytes=0, spill_bytes=0, threads=256), 4),
        (AMD_LIMITS["gfx942"], Resources(registers=32, shared_bytes=32 * 1024, spill_bytes=0, threads=64), 2),
        (AMD_LIMITS["gfx942"], Resources(registers=32, shared_bytes=0, spill_bytes=0, threads=1024), 2),
    ],
)
def test_what_runs_out_first_says_how_many_blocks_there_are(limits, resources, blocks):
    assert resident_blocks(resources, limits) == blocks
    assert occupancy(resources, limits) == blocks * resources.threads / limits.threads_per_sm


def test_what_is_not_known_gives_no_occupancy():
    unknown = Resources(registers=None, shared_bytes=0, spill_bytes=0, threads=64)
    assert occupancy(unknown, AMD_LIMITS["gfx942"]) is None
