"""Costs come from the recorded workload that is most like the planned one, and say which."""

from pathlib import Path

import numpy as np
import pytest

from autotune.planning.costs import CostBook, TrialCosts
from autotune.planning.overheads import SHIPPED, read_overheads
from autotune.recordings.finding import find_recordings, read_recording
from search_spaces.errors import BadLog
from search_spaces.hardware import cuda_hardware
from search_spaces.target import parse_target
from search_spaces.task import Task, find_operator

SPACES = Path(__file__).parents[3] / "experiments" / "spaces"


def task(operator, **axes):
    target = parse_target("cuda -arch=sm_90")
    workload = find_operator(operator).workload("cuda", None, **axes)
    return Task(operator, workload, target, cuda_hardware("sm_90", None))


@pytest.fixture(scope="module")
def recordings():
    names = ("matmul__h200__m1024-n1024", "matmul__h200__m8192-n8192", "softmax__h200__m16384-n4096", "pnpoly")
    return [read_recording(path) for path in find_recordings(names, SPACES)]


def test_the_same_operator_then_the_nearest_work(recordings):
    book = CostBook(recordings)
    assert book.costs_for(task("matmul", M=1024, N=512, K=1024)).source.startswith("matmul__h200__m1024")
    assert book.costs_for(task("matmul", M=8192, N=8192, K=4096)).source.startswith("matmul__h200__m8192")
    assert book.costs_for(task("matmul", M=64, N=64, K=64)).source.startswith("matmul"), (
        "though softmax moves as little"
    )
    assert book.costs_for(task("transpose", M=8192, N=4096)).source.startswith("softmax"), "which is nearest in work"


def test_they_are_the_recorded_seconds(recordings):
    (softmax,) = [r for r in recordings if r.kernel == "softmax"]
    made = CostBook(recordings).costs_for(task("softmax"))
    assert made.build is softmax.phases["build"]
    assert np.array_equal(made.device, softmax.phases["check"] + softmax.phases["measure"])
    build, device = made.drawn(5000, np.random.default_rng(0))
    pairs = set(zip(made.build.tolist(), made.device.tolist(), strict=True))
    assert set(zip(build, device, strict=True)) <= pairs, "a trial's phases stay together"
    assert np.mean(build) == pytest.approx(made.build.mean(), rel=0.2)


def test_without_costs_it_says_what_to_name(recordings):
    foreign = [r for r in recordings if r.kernel == "pnpoly"]
    with pytest.raises(BadLog, match="--costs"):
        CostBook(foreign)
    made = Task("matmul", find_operator("matmul").workload("llvm"), parse_target("llvm"), cuda_hardware("sm_90", None))
    with pytest.raises(BadLog, match="no costs were recorded for target llvm"):
        CostBook(recordings).costs_for(made)


@pytest.mark.parametrize("build", [[], [float("inf")], [float("nan")]])
def test_no_costs_are_refused(build):
    with pytest.raises(ValueError, match="made"):
        TrialCosts("made", np.array(build), np.array(build))


def test_the_shipped_overheads_are_measured_ones():
    found = read_overheads()
    assert min(found.start, found.suggest, found.record, found.final) > 0
    assert found.date
    assert found.device
    assert found.sources


@pytest.mark.parametrize("text", ["", "{}", '{"start": -1, "suggest": 0, "record": 0, "final": 0}', "\xff"])
def test_other_files_are_no_overheads(text, tmp_path):
    path = tmp_path / "overheads.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(BadLog, match="holds no overheads"):
        read_overheads(path)
    with pytest.raises(BadLog, match="cannot be read"):
        read_overheads(SHIPPED.with_name("gone.json"))
