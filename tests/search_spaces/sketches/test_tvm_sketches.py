import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from search_spaces import registry
from search_spaces.errors import InvalidSchedule
from search_spaces.hardware import cpu_hardware, cuda_hardware
from search_spaces.schedule import Schedule
from search_spaces.sketches.traces import factorisations
from search_spaces.space import Family
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

pytest.importorskip("tvm")

CPU = cpu_hardware("test cpu", cores=2, l3_bytes=32 << 20, bandwidth=4e10, peak={"float32": 2e11})


def llvm_task(operator, only, dtype="float32", **axes):
    workload = find_operator(operator).workload("llvm", dtype, **axes)
    return Task(operator, workload, Target("llvm", cores=2), CPU, (only,))


def cuda_task(operator, only, dtype="float16", **axes):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    return Task(operator, workload, Target("cuda", "sm_80"), cuda_hardware("sm_80"), (only,))


def samples(task, count, seed=0):
    rng = np.random.default_rng(seed)
    return [task.space.sample(rng) for _ in range(count)]


def refusal(task, schedule):
    try:
        task.sketch_of(schedule).scheduled(task, schedule)
    except InvalidSchedule as error:
        return error.message
    return None


def families(task):
    return {knob.family for sketch in task.space.sketches for knob in sketch.knobs}


def test_factorisations_are_all_ordered_products():
    found = factorisations(12, 2, most_innermost=4)
    assert found == ((3, 4), (4, 3), (6, 2), (12, 1))
    assert all(np.prod(f) == 64 for f in factorisations(64, 4, 16))


def test_metaschedule_names_the_decisions_of_a_matmul():
    task = llvm_task("matmul", "tvm.metaschedule", M=64, N=32, K=48)
    assert [k.name for k in task.space.sketches[0].knobs] == [
        "C.tile_i",
        "C.tile_j",
        "C.tile_k",
        "jobs",
        "vector",
        "unroll",
    ]
    assert families(task) >= {Family.TILE_SIZES, Family.VECTOR_WIDTH, Family.UNROLLING, Family.PARALLELISM}
    assert len(task.space.sketches) == 3


def test_metaschedule_leaves_no_room_for_one_element_axes():
    task = llvm_task("matmul", "tvm.metaschedule", M=1, N=32, K=48)
    assert "C.tile_i" not in {k.name for s in task.space.sketches for k in s.knobs}


def test_compute_locations_are_knobs_of_the_loop_order():
    task = llvm_task("softmax", "tvm.metaschedule", M=16, N=64)
    assert Family.LOOP_ORDER in families(task)


@pytest.mark.parametrize("sketch", ["tvm.metaschedule", "tvm.matmul_packed", "tvm.untuned"])
def test_spaces_are_the_same_in_another_process(sketch):
    task = llvm_task("matmul", sketch, M=64, N=64, K=64)
    code = "import sys, pickle; task = pickle.loads(bytes.fromhex(sys.argv[1]));print(task.space.fingerprint)"
    command = [sys.executable, "-c", code, pickle.dumps(task).hex()]
    other = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "7"}
    )
    assert other.stdout.strip() == task.space.fingerprint


@pytest.mark.parametrize(
    ("operator", "sketch", "axes"),
    [
        ("matmul", "tvm.metaschedule", {"M": 64, "N": 48, "K": 32}),
        ("softmax", "tvm.metaschedule", {"M": 16, "N": 96}),
        ("attention", "tvm.metaschedule", {"H": 2, "S": 16, "D": 16}),
        ("matmul", "tvm.matmul_packed", {"M": 64, "N": 48, "K": 32}),
    ],
)
def test_sampled_schedules_are_legal_and_replay(operator, sketch, axes):
    task = llvm_task(operator, sketch, **axes)
    for schedule in samples(task, 12):
        assert task.space.why_not(schedule) is None
        made = task.sketch_of(schedule).scheduled(task, schedule)
        assert len(made.trace.insts) > 0


def test_the_same_schedule_gives_the_same_module():
    tvm = pytest.importorskip("tvm")
    task = llvm_task("softmax", "tvm.metaschedule", M=16, N=64)
    (schedule,) = samples(task, 1)
    first, second = (task.sketch_of(schedule).scheduled(task, schedule).mod for _ in range(2))
    tvm.ir.assert_structural_equal(first, second)


def test_a_scheduled_trace_holds_the_decisions_of_its_knobs():
    task = llvm_task("matmul", "tvm.metaschedule", M=64, N=64, K=64)
    (schedule,) = samples(task, 1)
    trace = task.sketch_of(schedule).scheduled(task, schedule).trace
    tiles = [tuple(int(v) for v in trace.decisions[i]) for i in trace.insts if i.kind.name == "SamplePerfectTile"]
    assert tiles == [schedule[name] for name in ("C.tile_i", "C.tile_j", "C.tile_k")]


def test_the_default_is_the_untuned_schedule_and_legal():
    for operator in ("matmul", "softmax", "attention"):
        task = llvm_task(operator, "tvm.")
        assert task.default.sketch == "tvm.untuned"
        assert task.space.why_not(task.default) is None


def test_the_untuned_cpu_schedule_is_parallel_and_vectorised():
    task = llvm_task("attention", "tvm.untuned", H=2, S=32, D=32)
    text = task.sketch_of(task.default).scheduled(task, task.default).mod.script()
    assert "T.parallel" in text
    assert "T.vectorized" in text


def test_packed_matmul_offers_every_family_of_a_cpu():
    task = llvm_task("matmul", "tvm.matmul_packed")
    wanted = {Family.TILE_SIZES, Family.VECTOR_WIDTH, Family.LOOP_ORDER, Family.REGISTERS, Family.UNROLLING}
    assert families(task) >= wanted | {Family.SHARED_MEMORY}


def test_packed_matmul_refuses_a_tile_that_spills():
    task = llvm_task("matmul", "tvm.matmul_packed", M=64, N=64, K=64)
    (schedule,) = samples(task, 1)
    spilling = Schedule.from_json({**schedule.to_json(), "micro_m": 16, "micro_n": 64})
    assert task.space.why_not(spilling) == "the tile of C does not fit the vector registers"


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (llvm_task("matmul", "tvm.matmul_packed", N=12), "not a multiple of 8"),
        (llvm_task("matmul", "tvm.matmul_packed", "float16"), "float32"),
        (cuda_task("matmul", "tvm.matmul_packed"), "CPU"),
        (cuda_task("attention", "tvm.metaschedule"), "matmul and softmax"),
        (cuda_task("attention", "tvm.untuned"), "matmul and softmax"),
        (llvm_task("softmax", "tvm.metaschedule", "bfloat16"), "bfloat16"),
    ],
)
def test_refusals_say_why(task, reason):
    (why,) = (why for name, why in task.refusals.items() if name in task.only)
    assert reason in why


def test_without_tvm_every_sketch_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(registry, "available", lambda module: False)
    task = llvm_task("matmul", "tvm.")
    assert not task.sketches
    assert all("pip install 'apache-tvm" in why for why in task.refusals.values())


def test_gpu_tiles_beyond_the_limits_are_refused_before_tvm_sees_them():
    task = cuda_task("matmul", "tvm.metaschedule", M=256, N=256, K=256)
    space = task.space.sketches[0]
    assert {c.reason for c in space.constraints} == {
        "a block needs 32 to 1024 threads",
        "more than 8 virtual threads",
        "needs more than 48 KiB of shared memory",
        "holds more sums than a thread has registers",
        "leaves most multiprocessors without a block",
    }
    for schedule in samples(task, 6):
        assert refusal(task, schedule) in (None, "MetaSchedule's postprocessor VerifyGPUCode refuses it")
