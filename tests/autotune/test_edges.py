"""Sketches of finalists are tried on small odd workloads, and what is wrong there is told as what it is."""

from pathlib import Path

import pytest

from autotune.edges import edge_cases
from autotune.executors.base import Measuring, Site
from autotune.executors.local import Local
from autotune.measurement import Policy, Status
from autotune.measurer import Measurer
from search_spaces.hardware import cpu_hardware
from search_spaces.registry import load_file
from search_spaces.schedule import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

HERE = Path(__file__).parents[1]
TOY = f"{HERE / 'support' / 'toy.py'}:Toy"
EVIL = HERE / "evil" / "kernels.py"
HARDWARE = cpu_hardware("test", 2, 1 << 20, 1e12, {"float32": 1e13})
kernels = load_file(EVIL)


def task(name, **axes):
    return Task(name, find_operator(name).workload("llvm", **axes), Target("llvm"), HARDWARE)


def test_a_schedule_that_is_legal_there_is_tried_itself():
    toy = task(TOY)
    others = [toy.default, Schedule((*toy.default.items[:1], ("tile", 4), *toy.default.items[2:]))]
    (case,) = edge_cases(toy, others)
    assert case.task.workload["N"] == 257
    assert case.schedules == {s: s for s in others}


def test_one_whose_tiles_do_not_fit_is_stood_in_for_once_a_sketch():
    pytest.importorskip("tvm")
    made = task("matmul", M=64, N=64, K=64)
    finalists = [
        s
        for s in (
            made.space.complete(made.default.__class__((("sketch", n.sketch),)), lambda _, o: o)
            for n in made.space.sketches
        )
        if s is not None
    ]
    (case,) = edge_cases(made, finalists)
    assert dict(case.task.workload.axes) == {"M": 33, "N": 33, "K": 33, "trans_b": 0}
    names = [s.sketch for s in case.schedules]
    assert len(names) == len(set(names))
    assert "tvm.untuned" in names
    assert all(case.task.space.why_not(s) is None for s in case.schedules)
    assert {f.sketch for f in case.schedules.values()} == set(names)


@pytest.fixture
def measurer(tmp_path):
    made = Measurer(
        Local(Site(), tmp_path), Measuring(task(f"{EVIL}:Evil"), Policy(samples=3, run_seconds=5.0)), jobs=2
    )
    made.device()
    yield made
    made.close()


def test_what_is_wrong_there_is_told_and_what_cannot_be_built_is_passed_over(measurer):
    asked = ["honest", "right_on_its_shape_only", "exits_at_once", "compiler_aborts"]
    report = measurer.finals.check_edges([kernels.schedule_of(name) for name in asked])
    assert report.checked == 3
    wrong, died = sorted(report.faults, key=lambda f: f.status, reverse=True)
    assert (wrong.status, wrong.schedule) == (Status.WRONG_RESULT, kernels.schedule_of("right_on_its_shape_only"))
    assert wrong.workload.axes == (("M", 33), ("N", 257))
    assert str(wrong).startswith("evil.tricks is not right on evil M=33,N=257 float32, which it does not refuse: dev")
    assert (died.status, died.why) == (Status.CRASHED, "the process exited with code 4")
