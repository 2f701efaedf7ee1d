import dataclasses
import pickle

import pytest

from search_spaces.errors import InvalidWorkload, NothingValid, UnknownName
from search_spaces.hardware import cuda_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

OPERATOR = """
from search_spaces.operators.softmax import Softmax
from search_spaces.sketch import Sketch
from search_spaces.space import SKETCH, Constraint, Family, Knob, Schedule, SketchSpace


class Rows(Sketch):
    name, generator, operator, summary = "own.rows", "own", "doubled", "rows"

    def refuses(self, task):
        return None if task.workload["N"] < 100 else "rows are too long"

    def spaces(self, task):
        warps = Knob("warps", Family.WARPS, (1, 2, 4, 8))
        fits = Constraint("too many threads", ("warps",), lambda w: w * 32 <= task.hardware.limits.threads_per_block)
        return tuple(SketchSpace(f"own.rows/{i}", (warps,), (fits,)) for i in range(2))

    def derived(self, task, schedule):
        return {"threads": schedule.integer("warps") * 32.0}


class Columns(Rows):
    name, operator = "own.columns", "doubled"

    def refuses(self, task):
        return None

    def spaces(self, task):
        legal = tuple(w for w in (1, 2) if task.workload["M"] % 8 == 0)
        return (SketchSpace("own.columns", (Knob("warps", Family.WARPS, legal),)),)

    def default(self, task):
        assert self.spaces(task)
        return Schedule(((SKETCH, "own.columns"), ("warps", 1)))


class Doubled(Softmax):
    name = "doubled"

    def sketches(self):
        return (Rows(), Columns())
"""


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "doubled.py"
    path.write_text(OPERATOR)
    reference = f"{path}:Doubled"
    workload = find_operator(reference).workload(M=64, N=32)
    return Task(reference, workload, Target("cuda", "sm_80"), cuda_hardware("sm_80"), ("own.",))


def test_the_space_is_that_of_every_sketch_that_applies(task):
    assert [s.sketch for s in task.space.sketches] == ["own.rows/0", "own.rows/1", "own.columns"]
    assert task.sketch_of(next(iter(task.space))).name == "own.rows"
    assert task.refusals == {}


def test_a_sketch_that_does_not_apply_says_why(task):
    long = dataclasses.replace(task, workload=task.operator.workload(N=512))
    assert list(long.sketches) == ["own.columns"]
    assert long.refusals == {"own.rows": "rows are too long"}
    with pytest.raises(NothingValid, match="rows are too long"):
        _ = dataclasses.replace(long, only=("own.rows",)).space


def test_a_sketch_that_makes_no_space_is_named_with_the_remedy(task):
    empty = dataclasses.replace(task, workload=task.operator.workload(M=7, N=32))
    for ask in (lambda: empty.space, lambda: empty.default):
        with pytest.raises(InvalidWorkload, match=r"own\.columns makes no space of .*M=7.*knob warps.*refuses"):
            ask()


def test_sketches_can_be_chosen_by_prefix(task):
    assert list(dataclasses.replace(task, only=("own.col",)).sketches) == ["own.columns"]


def test_the_default_is_the_first_that_a_sketch_offers(task):
    assert task.default.sketch == "own.columns"
    assert task.space.why_not(task.default) is None
    with pytest.raises(NothingValid, match="offers a default"):
        _ = dataclasses.replace(task, only=("own.rows",)).default


def test_the_key_tells_apart_what_is_not_comparable(task):
    others = [
        dataclasses.replace(task, workload=task.operator.workload(M=128, N=32)),
        dataclasses.replace(task, target=Target("cuda", "sm_86")),
        dataclasses.replace(task, hardware=cuda_hardware("sm_86")),
        dataclasses.replace(task, only=("own.rows",)),
    ]
    assert len({t.key for t in [task, *others]}) == 5
    assert dataclasses.replace(task, hardware=cuda_hardware("sm_80", "NVIDIA A100 80GB PCIe")).key == task.key


def test_a_task_travels_without_what_it_derives(task):
    assert task.space is not None
    copy = pickle.loads(pickle.dumps(task))
    assert copy == task
    assert copy.key == task.key
    assert "space" not in pickle.loads(pickle.dumps(dataclasses.replace(task))).__dict__


def test_the_roofline_bounds_by_memory_or_arithmetic():
    matmul, softmax = find_operator("matmul"), find_operator("softmax")
    hardware, target = cuda_hardware("sm_90", "NVIDIA H200"), Target("cuda", "sm_90")
    compute = Task("matmul", matmul.workload(M=8192, N=8192, K=8192), target, hardware)
    assert compute.floor_seconds == pytest.approx(2 * 8192**3 / 989e12)
    memory = Task("softmax", softmax.workload(M=4096, N=4096), target, hardware)
    assert memory.floor_seconds == pytest.approx(2 * 4096 * 4096 * 2 / 4.8e12)


def test_an_unknown_operator_is_guessed():
    with pytest.raises(UnknownName, match="did you mean 'matmul'"):
        find_operator("matmull")
