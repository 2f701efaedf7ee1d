"""Every way in which a candidate can end, and that the run goes on after it."""

from pathlib import Path

import pytest

from autotune.executors.base import Measuring, Site
from autotune.executors.local import Local
from autotune.measurement import Policy, Status
from autotune.measurer import Measurer
from search_spaces.hardware import cpu_hardware
from search_spaces.registry import load_file
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

TOY_FILE = Path(__file__).parents[1] / "support" / "toy.py"
TOY = f"{TOY_FILE}:Toy"
RECORDED = Path(__file__).parents[1] / "support" / "recorded.py"
# Seconds: room enough for a sound schedule on a machine that does other things too.
LIMIT = 4.0
HARDWARE = cpu_hardware("test", 2, 1 << 20, 1e12, {"float32": 1e13})


@pytest.fixture(scope="module")
def task():
    workload = find_operator(TOY).workload("llvm", tricks=1)
    return Task(TOY, workload, Target("llvm"), HARDWARE)


@pytest.fixture
def measurer(task, tmp_path):
    policy = Policy(samples=3, build_seconds=LIMIT, run_seconds=LIMIT)
    made = Measurer(Local(Site(), tmp_path), Measuring(task, policy), jobs=2)
    made.device()
    yield made
    made.close()


def with_trick(task, trick, tile=8):
    return Schedule(
        (*task.default.items[:1], ("tile", tile), ("width", 1), ("order", 0), ("trick", trick), ("chunk", 1))
    )


def drain(measurer):
    done = {}
    while measurer.in_flight:
        for measurement in measurer.completed(1.0):
            assert measurement.schedule not in done, "each comes back once"
            done[measurement.schedule] = measurement
    return done


EXPECTED = {
    "none": (Status.OK, ""),
    "build_error": (Status.BUILD_ERROR, "does not compile"),
    "build_abort": (Status.CRASHED, "SIGABRT"),
    "build_hang": (Status.TIMEOUT, "longer than 4 s"),
    "raise": (Status.LAUNCH_ERROR, "illegal memory access"),
    "exit": (Status.CRASHED, "code 3"),
    "abort": (Status.CRASHED, "SIGABRT"),
    "segfault": (Status.CRASHED, "SIGSEGV"),
    "hang": (Status.TIMEOUT, "longer than 4 s"),
    "wrong": (Status.WRONG_RESULT, "tolerance"),
    "skip_write": (Status.WRONG_RESULT, "not finite"),
    "partial_write": (Status.WRONG_RESULT, "not finite"),
}


def test_every_misbehaviour_ends_in_its_status_and_the_run_goes_on(task, measurer):
    schedules = {trick: with_trick(task, trick) for trick in EXPECTED}
    measurer.submit([*schedules.values(), with_trick(task, "none", tile=4)])
    done = drain(measurer)
    for trick, (status, detail) in EXPECTED.items():
        assert done[schedules[trick]].status is status, (trick, done[schedules[trick]])
        assert detail in done[schedules[trick]].detail
    assert done[with_trick(task, "none", tile=4)].status is Status.OK


def test_a_binary_is_measured_once(task, measurer):
    twins = [
        with_trick(task, "none"),
        Schedule((*with_trick(task, "none").items[:3], ("order", 1), ("trick", "none"), ("chunk", 1))),
    ]
    measurer.submit(twins[:1])
    first = drain(measurer)[twins[0]]
    measurer.submit(twins[1:])
    second = drain(measurer)[twins[1]]
    assert second.samples == first.samples
    assert "same binary" in second.detail
    assert second.phases.measure == 0.0


def test_a_clearly_slow_candidate_is_timed_no_further(tmp_path):
    recorded = load_file(RECORDED)
    task = recorded.recorded_task()
    made = Measurer(Local(Site(), tmp_path), Measuring(task, Policy(samples=3), device=recorded.DEVICE_NAME), jobs=1)
    made.device()
    fast = Schedule((task.default.items[0], *zip(recorded.KNOBS, (4, 8, 16, 32, 64), strict=True)))
    made.submit([fast])
    assert len(drain(made)[fast].samples) == 3
    made.submit([task.default])
    assert len(drain(made)[task.default].samples) == 1
    made.close()


def test_an_endless_candidate_is_run_twice_and_no_more(task, measurer, tmp_path):
    measurer.submit([with_trick(task, "none")])
    drain(measurer)
    endless = with_trick(task, "endless")
    measurer.submit([endless])
    ended = drain(measurer)[endless]
    assert ended.status is Status.OK
    assert len(ended.samples) == 1
    assert ended.samples[0] >= 0.3
    assert "more than twice" in ended.detail
    (launches,) = tmp_path.rglob(load_file(TOY_FILE).LAUNCHES)
    assert len(launches.read_text().splitlines()) == 2


def test_a_race_times_everyone_each_round(task, measurer):
    racers = [with_trick(task, "none", tile=8), with_trick(task, "none", tile=2)]
    look = measurer.finals.race(racers, 4, 0, True)
    times, library = look.times, look.library
    assert not look.faults
    assert {len(t) for t in times.values()} == {4}
    assert set(times) == set(racers)
    assert len(library["numpy"]) == 4
    pause_of = load_file(TOY_FILE).pause_of
    assert pause_of(racers[1]) > 10 * pause_of(racers[0])
    assert all(min(times[r]) >= pause_of(r) for r in racers), "each has its own times, however busy the machine"


def test_a_time_below_the_roofline_is_implausible(tmp_path):
    workload = find_operator(TOY).workload("llvm")
    slow_roof = cpu_hardware("test", 2, 1 << 20, 1.0, {"float32": 1e13})
    task = Task(TOY, workload, Target("llvm"), slow_roof)
    made = Measurer(Local(Site(), tmp_path), Measuring(task, Policy(samples=3)), jobs=1)
    made.device()
    made.submit([task.default])
    assert drain(made)[task.default].status is Status.IMPLAUSIBLE
    made.close()


def test_many_schedules_of_one_binary_all_come_back(tmp_path):
    workload = find_operator(TOY).workload("llvm")
    task = Task(TOY, workload, Target("llvm"), HARDWARE)
    made = Measurer(Local(Site(), tmp_path), Measuring(task, Policy(samples=1)), jobs=2)
    made.device()
    base = Schedule((*task.default.items[:3], ("order", 0), ("trick", "none"), ("chunk", 1)))
    twins = [Schedule((*base.items[:-1], ("chunk", c))) for c in (1, 2, 4, 8)]
    made.submit(twins)
    assert set(drain(made)) == set(twins)
    made.close()
