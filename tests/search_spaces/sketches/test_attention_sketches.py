"""The attention sketches: where they apply, how they share out the work, and what the compiler makes of the roles."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from search_spaces.hardware import cuda_hardware
from search_spaces.sketches.triton.base import WorkspaceArgument
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

ROLES = "triton.attention_warpgroups"
PIECES = "triton.attention_decode_pieces"


def task(operator="attention", arch="sm_90", dtype="float16", **axes):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    return Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def changed(schedule, **knobs):
    return Schedule(tuple((k, knobs.get(k, v)) for k, v in schedule.items))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"arch": "sm_80"}, "TMA"),
        ({"arch": "sm_100"}, "wgmma"),
        ({"dtype": "float32"}, "triton.attention_pointers takes it"),
    ],
)
def test_roles_refuse_with_a_reason(case, reason):
    assert reason in task(**case).refusals[ROLES]


def test_the_window_names_its_own_sketch_where_others_refuse():
    made = task("attention_window", dtype="float32")
    assert list(made.sketches) == ["triton.attention_window_pointers"]
    assert "triton.attention_window_pointers takes it" in made.refusals["triton.attention_window_descriptors"]


@pytest.mark.parametrize(
    ("knobs", "programs"),
    [({"persistent": True}, 132), ({"persistent": False, "serpentine": False}, 4096), ({"block_m": 256}, 132)],
)
def test_persistent_programs_are_one_a_multiprocessor(knobs, programs):
    made = task()
    sketch = made.sketches[ROLES]
    assert sketch.launch(made, changed(sketch.default(made), **knobs)).grid == (programs, 1, 1)


def test_a_tile_is_never_shared_by_more_programs_than_there_are():
    made = task(B=1, H=2, S=300)
    assert made.sketches[ROLES].launch(made, made.sketches[ROLES].default(made)).grid == (6, 1, 1)


@pytest.mark.parametrize(("head", "keys", "tiles"), [(64, 128, 2), (128, 128, 2), (256, 64, 1)])
def test_large_heads_leave_room_for_fewer_keys_and_queries(head, keys, tiles):
    made = task(D=head)
    default = made.sketches[ROLES].default(made)
    assert (default["block_n"], default["query_tiles"]) == (keys, tiles)
    assert made.space.why_not(default) is None


def test_two_programs_on_a_multiprocessor_share_its_registers(tmp_path):
    pytest.importorskip("triton")
    from autotune.generators.triton import GENERATOR

    made = task(D=64, S=512)
    schedule = changed(made.sketches[ROLES].default(made), block_n=32, resident=2)
    assert made.space.why_not(schedule) is None
    assert made.sketches[ROLES].launch(made, schedule).grid == (264, 1, 1)
    used = GENERATOR.build(made, schedule, tmp_path).resources
    assert used.spill_bytes == 0
    limits = made.hardware.limits
    assert 2 * used.registers * used.threads <= limits.registers_per_sm
    assert 2 * used.shared_bytes <= limits.shared_per_sm
    assert "registers" in made.space.why_not(changed(schedule, block_n=64))


def test_what_roles_cannot_hold_is_refused_for_free():
    made = task()
    default = made.sketches[ROLES].default(made)
    assert "registers" in made.space.why_not(changed(default, block_m=256))
    assert "shared memory" in made.space.why_not(changed(default, num_stages=3))
    assert "round" in made.space.why_not(changed(default, persistent=False))


def test_softmax_runs_while_a_product_is_under_way(tmp_path):
    triton = pytest.importorskip("triton")
    from autotune.generators.triton import GENERATOR

    made = task(B=1, H=2, S=512)
    built = GENERATOR.build(made, made.sketches[ROLES].default(made), tmp_path)
    assert built.resources.spill_bytes == 0
    cubin = next(Path(built.path).glob("*.cubin"))
    tool = triton.knobs.nvidia.cuobjdump.path
    told = subprocess.run([tool, "-sass", str(cubin)], capture_output=True, text=True, check=True).stdout
    words = re.findall(r"HGMMA|MUFU\.EX2|WARPGROUP\.DEPBAR\.LE gsb0, 0x[01]", told)
    overlapped = re.findall(r"(?:HGMMA )+one ((?:exp )+)zero", " ".join(map(_word, words)))
    # Two groups of warps, each with a loop over blocks that are masked and one over those that are not.
    assert len(overlapped) == 4
    assert all(exps.count("exp") >= 64 for exps in overlapped)


def _word(instruction):
    if instruction.startswith("WARPGROUP"):
        return "one" if instruction.endswith("1") else "zero"
    return "exp" if instruction.startswith("MUFU") else instruction


@pytest.mark.parametrize(
    ("axes", "block_m"),
    [({}, 16), ({"H": 32, "G": 32}, 16), ({"H": 64, "G": 2}, 32), ({"H": 32, "G": 8, "T": 8}, 32)],
)
def test_queries_that_share_keys_are_taken_together(axes, block_m):
    made = task("attention_decode", **axes)
    assert made.default["block_m"] == block_m


@pytest.mark.parametrize(("batch", "pieces"), [(1, 33), (16, 2), (32, 1)])
def test_the_default_splits_the_cache_until_the_device_is_full(batch, pieces):
    made = task("attention_decode", B=batch, H=32, G=8)
    launch = made.sketches[PIECES].launch(made, made.default)
    assert made.default["pieces"] == pieces
    assert launch.grid == (batch * 8 * made.default["pieces"], 1, 1)


def test_pieces_have_memory_for_sums_peak_and_total_of_every_query():
    made = task("attention_decode", B=2, H=12, G=4, T=5, D=96, S=1000)
    launch = made.sketches[PIECES].launch(made, changed(made.default, pieces=3))
    spaces = {k: a for k, a in launch.arguments.items() if isinstance(a, WorkspaceArgument)}
    assert spaces["partial"].elements == 3 * (2 * 12 * 5) * (96 + 2)
    assert spaces["counters"] == WorkspaceArgument(8, "int32")


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        ({"pieces": 128}, "without keys"),
        ({"join": 4, "pieces": 2}, "there are pieces"),
        ({"block_m": 64}, "share a key/value head"),
        ({"block_n": 256, "num_stages": 6}, "shared memory"),
    ],
)
def test_what_decoding_cannot_use_is_refused_for_free(knobs, reason):
    made = task("attention_decode", B=1, S=4000)
    assert reason in made.space.why_not(changed(made.default, **knobs))


def test_a_window_costs_what_it_sees():
    operator = find_operator("attention_window")
    small = operator.workload("cuda", B=1, H=1, S=5, D=16, W=2)
    assert operator.cost(small).operations == 4 * 16 * (1 + 2 + 2 + 2 + 2)
    full = operator.workload("cuda", B=1, H=1, S=5, D=16, W=9)
    assert operator.cost(full).operations == 4 * 16 * (1 + 2 + 3 + 4 + 5)
    assert operator.reduction_length(full) == 5


def test_a_wide_window_is_causal_attention():
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((1, 2, 7, 16)) for _ in range(3))
    axes = {"B": 1, "H": 2, "G": 2, "S": 7, "D": 16}
    windowed, causal = find_operator("attention_window"), find_operator("attention")
    (seen,) = windowed.reference(windowed.workload("llvm", **axes, W=7), np, q, k, v)
    (right,) = causal.reference(causal.workload("llvm", **axes, causal=1), np, q, k, v)
    np.testing.assert_array_equal(seen, right)
    (alone,) = windowed.reference(windowed.workload("llvm", **axes, W=1), np, q, k, v)
    np.testing.assert_allclose(alone, v)


@pytest.mark.parametrize("block_n", [16, 64])
def test_a_window_visits_only_blocks_that_it_sees(block_n):
    made = task("attention_window", B=1, H=1, S=1024, D=64, W=100)
    sketch = made.sketches["triton.attention_window_pointers"]
    needed, visited = sketch.pairs(made, 64, block_n)
    seen = np.tri(1024, dtype=bool) & ~np.tri(1024, k=-100, dtype=bool)
    blocks = seen.reshape(16, 64, 1024 // block_n, block_n).any(axis=(1, 3))
    assert needed == seen.sum()
    assert visited == blocks.sum() * 64 * block_n
