"""A contest without its process: everyone in every round, copies too, and a tuned kernel that is wrong is told."""

from pathlib import Path

import pytest

from autotune.benchmark.contest import LEAST_ROUNDS, Admit, Compete, Contest
from autotune.generators.base import Artifact, Resources
from autotune.measurement import Policy
from search_spaces.hardware import cpu_hardware
from search_spaces.schedule import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

TOY = f"{Path(__file__).parents[2] / 'support' / 'toy.py'}:Toy"


@pytest.fixture
def contest(tmp_path):
    """A contest over the toy operator, and the job for a schedule of it."""
    workload = find_operator(TOY).workload("llvm", N=100, tricks=1)
    task = Task(TOY, workload, Target("llvm"), cpu_hardware("cpu", 2, 1 << 20, 1e11, {"float32": 1e12}))

    def job(trick, libraries=(), copies=()):
        schedule = Schedule.from_json({**task.default.to_json(), "tile": 8, "trick": trick})
        return Compete(schedule, Artifact(str(tmp_path), "x", Resources()), libraries, 0.01, 0, copies)

    return Contest(task, Policy(), tmp_path), job


def test_everyone_is_timed_in_every_round(contest):
    arena, job = contest
    admitted = arena.handle(Admit("numpy_calls"))
    assert admitted.errors["numpy"] <= 1.0
    found = arena.handle(job("none", ("numpy_calls",), (1 << 16, 1 << 12)))
    assert found.fault == ""
    assert found.error <= 1.0
    assert list(found.copies) == [1 << 16, 1 << 12]
    rows = [found.tuned, found.library["numpy"], *found.copies.values()]
    assert len({len(row) for row in rows}) == 1
    assert len(found.tuned) >= LEAST_ROUNDS
    assert all(seconds > 0 for row in rows for seconds in row)


def test_a_child_started_anew_admits_again_whom_it_is_told(contest):
    arena, job = contest
    assert set(arena.handle(job("none", ("numpy_calls",))).library) == {"numpy"}
    assert arena.handle(job("none")).library == {}


def test_a_tuned_kernel_that_is_wrong_is_told(contest):
    arena, job = contest
    found = arena.handle(job("wrong", ("numpy_calls",)))
    assert "tolerance" in found.fault
    assert found.tuned == ()
