"""The Hopper sketch with roles for groups of warps: where it applies, its grid, and how its PTX is rewritten."""

import importlib.util
from types import SimpleNamespace

import pytest

from search_spaces.hardware import cuda_hardware
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

NAME = "triton.matmul_warpgroups"


def task(arch="sm_90", dtype="float16", **axes):
    workload = find_operator("matmul").workload("cuda", dtype, **axes)
    return Task("matmul", workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def changed(schedule, **knobs):
    return Schedule(tuple((k, knobs.get(k, v)) for k, v in schedule.items))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"arch": "sm_80"}, "TMA"),
        ({"arch": "sm_100"}, "wgmma"),
        ({"arch": "sm_120"}, "wgmma"),
        ({"dtype": "float32"}, "float32"),
        ({"K": 517}, "16 bytes"),
    ],
)
def test_refusals_name_their_reason(case, reason):
    assert reason in task(**case).refusals[NAME]


def test_a_triton_without_gluon_is_refused(monkeypatch, tmp_path):
    without = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: without)
    assert "Gluon" in task().refusals[NAME]


def test_it_leaves_the_default_to_the_persistent_sketch():
    made = task()
    assert made.default.sketch == "triton.matmul_persistent"
    assert made.space.why_not(made.sketches[NAME].default(made)) is None


@pytest.mark.parametrize(
    ("knobs", "programs"),
    [
        ({"even": False}, 132),
        ({"even": True}, 128),
        ({"even": True, "cluster": 2}, 128),
        ({"even": False, "cluster": 2, "block_n": 128}, 132),
    ],
)
def test_an_even_grid_drops_programs_that_would_only_wait(knobs, programs):
    made = task(M=4096, N=4096, K=4096)
    sketch = made.sketches[NAME]
    schedule = changed(sketch.default(made), **knobs)
    assert made.space.why_not(schedule) is None
    launch = sketch.launch(made, schedule)
    assert launch.grid == (programs, 1, 1)
    assert launch.grid[0] % launch.cluster == 0


@pytest.mark.parametrize(
    ("knobs", "reason"),
    [
        ({"block_m": 256, "block_n": 256}, "sums"),
        ({"num_stages": 5}, "shared memory"),
        ({"cluster": 2, "block_n": 64}, "slab"),
    ],
)
def test_what_cannot_run_is_refused_for_free(knobs, reason):
    made = task(M=4096, N=4096, K=4096)
    assert reason in made.space.why_not(changed(made.sketches[NAME].default(made), **knobs))


def test_a_short_main_loop_has_no_lead():
    made = task(M=512, N=512, K=64)
    schedule = changed(made.sketches[NAME].default(made), block_k=64, num_stages=2, cluster=1)
    assert made.space.why_not(changed(schedule, lead=0)) is None
    assert "lead" in made.space.why_not(changed(schedule, lead=1))


def test_a_cluster_reads_less_and_counts_as_one_in_the_order_of_tiles():
    made = task(M=4096, N=4096, K=4096)
    sketch = made.sketches[NAME]
    alone = sketch.default(made)
    together = changed(alone, cluster=2)
    first, second = (sketch.derived(made, schedule) for schedule in (alone, together))
    assert second["log2_intensity"] > first["log2_intensity"]
    assert sketch.derived(made, changed(together, group=4))["log2_wave_cache"] == first["log2_wave_cache"]


def test_every_file_of_the_kernel_defines_the_sketch():
    names = {path.name for path in task().sketches[NAME].sources()}
    assert {"matmul_warpgroups.py", "warpgroups.py", "cluster.py", "matmul_tma.py"} <= names


PTX = """.reqntid 384
.maxnreg 168
@%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];
// everywhere
@%p2 mbarrier.arrive.shared::cta.b64 _, [%r2];
// here
// everywhere
@%p3 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r4, %r5}], [%r6];
// here
@%p4 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1, {%r4, %r5}], [%r6];
"""


def test_only_marked_instructions_go_to_every_block():
    pytest.importorskip("triton")
    from search_spaces.kernels.cluster import rewritten

    lines = rewritten(PTX, 2).splitlines()
    assert lines[:3] == [".reqntid 384", ".explicitcluster", ".reqnctapercluster 2"]
    assert lines.count("@%p1 mbarrier.arrive.shared::cta.b64 _, [%r1];") == 1
    (arrivals,) = (line for line in lines if "%p2" in line)
    assert [f"there, %r2, {block};" in arrivals for block in range(3)] == [True, True, False]
    assert arrivals.count("@%p2 mbarrier.arrive.shared::cluster.b64 _, [there];") == 2
    (copied,) = (line for line in lines if "%p3" in line)
    assert "mov.b16 all, 3;" in copied
    assert "bytes.multicast::cluster [%r3], [%rd1, {%r4, %r5}], [%r6], all;" in copied
    (plain,) = (line for line in lines if "%p4" in line)
    assert "multicast" not in plain
