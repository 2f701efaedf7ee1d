"""`autotune record` and `autotune convert` as a user meets them, and what the sample is."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.cli import main
from autotune.recordings.finding import read_recording
from autotune.strategies.sample import STRATEGY
from autotune.task_options import TaskOptions, make_task
from search_spaces.space import Constraint, Family, Knob, ScheduleSpace, SketchSpace

HERE = Path(__file__).parents[2]
TOY = f"{HERE / 'tests' / 'support' / 'toy.py'}:Toy"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The command line in this process, which has imported all already."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_LOCK_DIR", str(tmp_path))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["autotune", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    return run


@pytest.fixture
def record(here, capsys):
    """Records the toy's space into `folder`; what was printed."""

    def run(*more, code=0):
        assert here("record", "--op", TOY, "--quiet", "--out", "folder", *more) == code
        return capsys.readouterr().out

    return run


def drawn(space, count, seed=0):
    search = STRATEGY(space, np.random.default_rng(seed))
    asked = []
    while len(asked) < count and (new := search.ask(min(16, count - len(asked)))):
        asked += new
    return asked


def test_a_sample_is_recorded_resumed_and_converted(tmp_path, here, record, capsys):
    first = json.loads(record("--sample", 8, "--json"))
    assert first["schedules"] == first["new_trials"] == 8
    record("--sample", 12, code=7)
    longer = json.loads(record("--sample", 12, "--resume", "--json"))
    assert (longer["schedules"], longer["new_trials"]) == (12, 4)
    found = read_recording(tmp_path / longer["recording"])
    assert found.space.schedules[0]["trick"] == "none"
    assert all(len(s) == 7 for s in found.samples), "every repeat of every schedule"
    assert not [line for line in (tmp_path / "folder" / "journal.jsonl").read_text().splitlines() if '"race"' in line]
    for form, name in (("t4", "toy__cpu.T4.json"), ("kernel-tuner", "toy__cpu.json.gz"), ("recording", "toy.gz")):
        assert here("convert", "folder", "--format", form, "--out", name) == 0
        assert "12 schedules, 12 ok" in capsys.readouterr().out
        assert read_recording(tmp_path / name).space.schedules == found.space.schedules


def test_a_whole_space_is_recorded(record):
    data = json.loads(record("--all", "--json", "--shape", "N=64"))
    task = make_task(TaskOptions(TOY, shape="N=64"), measure_roof=False)
    assert data["schedules"] == len(list(task.space))
    assert data["ok"] == data["schedules"]


MISTAKES = [
    (("record", "--op", "matmul", "--all", "--sample", "9"), 2, "exclude each other"),
    (("record", "--op", "matmul", "--resume"), 2, "name the recording's folder with --out"),
    (("record", "--op", "matmul", "--target", "cuda", "-arch=sm_90"), 4, "needs a CUDA device"),
    (("convert", "nothing", "--format", "t4", "--out", "x"), 2, "does not exist"),
    (("convert", "text", "--format", "t4", "--out", "x"), 5, "is no recording"),
    (("convert", "text", "--format", "t4", "--out", "text"), 2, "choose another --out"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), MISTAKES, ids=lambda x: " ".join(x) if type(x) is tuple else "")
def test_mistakes_get_one_clear_line(tmp_path, here, capsys, arguments, code, said):
    (tmp_path / "text").write_text("hello\n")
    assert here(*arguments) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("op", ["matmul", "attention"])
def test_shapes_of_an_operator_share_what_is_legal_in_both(op):
    shapes = {
        "matmul": ("M=4096,N=4096,K=4096", "M=1024,N=14336,K=4096"),
        "attention": ("S=4096,causal=1", "B=1,S=8192,causal=1"),
    }
    spaces = [
        make_task(TaskOptions(op, "cuda", "sm_90", s, sketches=("triton",)), measure_roof=False).space
        for s in shapes[op]
    ]
    one, other = (set(drawn(space, 200)) for space in spaces)
    assert len(one) == len(other) == 200
    legal_there = [s for s in one if spaces[1].why_not(s) is None]
    assert len(one & other) >= 0.95 * len(legal_there)
    assert len(one & other) >= 0.8 * 200


def test_another_seed_draws_others():
    space = make_task(TaskOptions("matmul", "cuda", "sm_90", sketches=("triton",)), measure_roof=False).space
    assert drawn(space, 50) == drawn(space, 50)
    assert len(set(drawn(space, 50)) & set(drawn(space, 50, seed=1))) < 5


def test_a_sample_is_uniform_over_what_is_legal():
    limit = Constraint("too much", ("a", "b"), lambda a, b: a + b < 9)
    knobs = (Knob("a", Family.WARPS, tuple(range(10))), Knob("b", Family.UNROLLING, tuple(range(10))))
    space = ScheduleSpace((SketchSpace("s", knobs, (limit,)),))
    legal = list(space)
    counts = dict.fromkeys(legal, 0)
    for seed in range(900):
        for schedule in drawn(space, 5, seed):
            counts[schedule] += 1
    expected = 900 * 5 / len(legal)
    chi_square = sum((c - expected) ** 2 / expected for c in counts.values())
    freedom = len(legal) - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5


def test_rare_schedules_are_found_in_the_end():
    limit = Constraint("not alike", ("a", "b", "c", "d"), lambda a, b, c, d: a == b == c == d)
    knobs = tuple(Knob(n, Family.WARPS, tuple(range(12))) for n in "abcd")
    space = ScheduleSpace((SketchSpace("s", knobs, (limit,)),))
    assert set(drawn(space, 100)) == set(space)
