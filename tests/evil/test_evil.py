"""Each trick and each crash ends in its status, the run goes on, and the honest kernel wins."""

from pathlib import Path

import pytest

from autotune.journal import load_runs
from autotune.measurement import Policy, Status
from autotune.sanitizer import find_sanitizer
from autotune.tune import Settings, tune
from search_spaces.errors import MissingDependency
from search_spaces.hardware import cpu_hardware, cuda_hardware
from search_spaces.registry import load_file
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

FILE = Path(__file__).with_name("kernels.py")
kernels = load_file(FILE)

WRONG, IMPLAUSIBLE = Status.WRONG_RESULT, Status.IMPLAUSIBLE
CRASHED, LAUNCH = Status.CRASHED, Status.LAUNCH_ERROR
BOTH = {
    "nondeterministic": (Status.OK, ""),
    "skipped_write": (WRONG, "not finite"),
    "partly_skipped_write": (WRONG, "not finite"),
    "skipped_when_timed": (WRONG, "when timed, not finite"),
    "turns_wrong_after_many_launches": (WRONG, "in the race, deviates"),
    "right_on_its_shape_only": (Status.OK, ""),
    "cached_output": (WRONG, "on other inputs, deviates"),
    "writes_to_input": (WRONG, "writes to its input X"),
    "writes_to_input_when_timed": (WRONG, "when timed, writes to its input X"),
    "right_for_small_inputs_only": (WRONG, "distribution 'large'"),
    "deferred_to_thread": (WRONG, "after the launch has ended"),
    "patched_clock": (IMPLAUSIBLE, "replaces time.perf_counter_ns"),
    "patched_device": (IMPLAUSIBLE, ".time"),
    "raises": (LAUNCH, "no such kernel"),
    "exits": (CRASHED, "code 3"),
    "exits_at_once": (CRASHED, "code 4"),
    "aborts": (CRASHED, "SIGABRT"),
    "compiler_aborts": (CRASHED, "SIGABRT"),
}
ON_CPU = BOTH | {
    "honest": (Status.OK, ""),
    "writes_before_output": (WRONG, "writes before its output Y"),
    "writes_after_output": (WRONG, "writes after its output Y"),
    "writes_after_input": (WRONG, "writes after its input X"),
    "illegal_address": (CRASHED, "SIGSEGV"),
    "bus_error": (CRASHED, "SIGBUS"),
    "huge_allocation": (LAUNCH, "MemoryError"),
    "exits_on_large_inputs": (CRASHED, "another distribution, the process exited with code 5"),
    "infinite_loop": (Status.TIMEOUT, "longer than 2 s"),
}
ON_CUDA = BOTH | {
    "honest_on_gpu": (Status.OK, ""),
    "writes_before_output_on_gpu": (WRONG, "writes before its output Y"),
    "writes_after_output_on_gpu": (WRONG, "writes after its output Y"),
    "writes_after_input_on_gpu": (WRONG, "writes after its input X"),
    "illegal_address_on_gpu": (LAUNCH, "illegal memory access"),
    "misaligned_address_on_gpu": (LAUNCH, "misaligned address"),
    "infinite_loop_on_gpu": (Status.TIMEOUT, "longer than 6 s"),
    "huge_allocation_on_gpu": (LAUNCH, "out of memory"),
    "patched_event": (IMPLAUSIBLE, "replaces Event.elapsed_time"),
    "other_stream": (WRONG, ""),
    "other_stream_in_order": (WRONG, "after the launch has ended"),
}


SURVIVORS = ("nondeterministic", "right_on_its_shape_only")


def sanitizer_is_installed():
    try:
        find_sanitizer()
    except MissingDependency:
        return False
    return True


def run(target, hardware, folder, run_seconds, sanitize=()):
    workload = find_operator(f"{FILE}:Evil").workload(target.kind)
    task = Task(f"{FILE}:Evil", workload, target, hardware)
    policy = Policy(samples=3, build_seconds=10.0, run_seconds=run_seconds)
    settings = Settings(strategy="exhaustive", trials=99, jobs=2, policy=policy, sanitize=sanitize)
    outcome = tune(task, settings, folder)
    (log,) = load_runs(folder)
    for schedule, trial in log.trials.items():
        print(f"{schedule['trick']:28} {trial.status:12} {trial.phases.check * 1e3:6.1f} ms  {trial.detail[:110]}")
    return outcome, {schedule["trick"]: trial for schedule, trial in log.trials.items()}


def assert_each_in_its_status(trials, expected):
    assert set(trials) == set(expected)
    ended = {name: (trial.status, trial.detail) for name, trial in trials.items()}
    unlike = {
        name: ended[name]
        for name, (status, detail) in expected.items()
        if ended[name][0] is not status or detail not in ended[name][1]
    }
    assert not unlike


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory):
    hardware = cpu_hardware("test", 2, 1 << 20, 1e12, {"float32": 1e13})
    return run(Target("llvm"), hardware, tmp_path_factory.mktemp("evil"), 2.0)


def test_each_ends_in_its_status_on_the_cpu(on_cpu):
    assert_each_in_its_status(on_cpu[1], ON_CPU)


def test_the_honest_kernel_wins_and_what_repeats_not_is_said(on_cpu):
    outcome, trials = on_cpu
    assert outcome.race is not None
    assert outcome.race.winner["trick"] in ("honest", *SURVIVORS)
    assert {s["trick"] for s in outcome.race.samples} == {"honest", *SURVIVORS}
    assert [s["trick"] for s in outcome.race.dropped] == ["turns_wrong_after_many_launches"]
    assert trials["honest"].deterministic is True
    assert trials["nondeterministic"].deterministic is False


def test_one_that_is_right_on_its_own_shape_stays_and_its_sketch_is_named(on_cpu):
    outcome, trials = on_cpu
    (log,) = load_runs(outcome.journal)
    (race,) = log.races
    assert race.edges_checked == 1 + len(SURVIVORS) + 1
    (fault,) = race.edge_faults
    assert fault.schedule["trick"] == "right_on_its_shape_only"
    assert fault.status is WRONG
    assert dict(fault.workload.axes) == {"M": 33, "N": 257}
    assert trials["right_on_its_shape_only"].status is Status.OK


@pytest.mark.gpu
def test_each_ends_in_its_status_on_the_gpu(tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    arch = "sm_{}{}".format(*torch.cuda.get_device_capability())
    tools = ("memcheck",) if sanitizer_is_installed() else ()
    outcome, trials = run(Target("cuda", arch), cuda_hardware(arch), tmp_path, 6.0, tools)
    beyond = "reads_far_beyond_output_on_gpu"
    seen = (WRONG, "compute-sanitizer memcheck: Invalid __global__ read of size 4 bytes") if tools else (Status.OK, "")
    assert_each_in_its_status(trials, ON_CUDA | {beyond: seen})
    assert outcome.race is not None
    unseen = () if tools else (beyond,)
    assert {s["trick"] for s in outcome.race.samples} == {"honest_on_gpu", *SURVIVORS, *unseen}
    assert "right_on_its_shape_only" in {f.schedule["trick"] for f in outcome.log.races[-1].edge_faults}
    assert trials["honest_on_gpu"].deterministic is True
    assert trials["nondeterministic"].deterministic is False
