"""A run's journal becomes a recording: every repeat and every failure of it, and the task as the search saw it."""

from pathlib import Path

import numpy as np
import pytest

from autotune.journal import FILE, load_runs
from autotune.measurement import Policy, Status
from autotune.recordings.finding import read_recording
from autotune.recordings.journaled import device_slug, families_of, recording_of, shape_slug
from autotune.recordings.native import read_native, write_recording
from autotune.tune import Settings, tune
from cost_models.context import context_of
from search_spaces.errors import NothingValid
from search_spaces.knob import Family
from search_spaces.operator import Workload
from search_spaces.registry import load_file

SUPPORT = load_file(Path(__file__).parents[2] / "support" / "recorded.py")
TRIALS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    settings = Settings("sample", trials=TRIALS, seed=4, jobs=2, device=SUPPORT.DEVICE_NAME, race=False)
    outcome = tune(SUPPORT.recorded_task(), settings, folder)
    assert outcome.race is None
    return folder


@pytest.fixture
def log(folder):
    return load_runs(folder)[0]


def test_every_trial_is_in_it_with_its_repeats(folder, log):
    found = read_recording(folder)
    assert len(found.status) == TRIALS
    assert found.space.schedules == tuple(log.trials)
    for place, trial in enumerate(log.trials.values()):
        assert found.status[place] is trial.status
        assert found.samples[place].tolist() == list(trial.samples)
        assert found.cost[place] == pytest.approx(trial.phases.build + trial.phases.check + trial.phases.measure)
    failed = [s for s, status in zip(found.space.schedules, found.status, strict=True) if status is not Status.OK]
    assert failed
    assert all(s["k0"] == 128 for s in failed)


def test_the_default_is_the_first(folder):
    assert read_recording(folder).space.schedules[0] == SUPPORT.recorded_task().default


def test_the_task_is_the_numbers_that_the_search_had(log):
    task = SUPPORT.recorded_task()
    found = recording_of(log).context
    named = {n: v for n, v in context_of(task).items() if not n.startswith("device")}
    assert {n: v for n, v in found.items() if not n.startswith("device")} == named


def test_it_survives_the_native_format(log, tmp_path):
    made = recording_of(log, families_of(SUPPORT.recorded_task().space))
    write_recording(made, tmp_path / "a")
    read = read_native(tmp_path / "a")
    assert read.space.schedules == made.space.schedules
    assert all(k.family is Family.TILE_SIZES for k in read.space.sketches[0].knobs)
    assert read.workload == made.workload
    np.testing.assert_allclose(read.seconds, made.seconds, rtol=1e-6)
    assert "numpy" in read.environment


def test_a_journal_without_a_verified_trial_is_none(folder, tmp_path):
    lines = (folder / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(x for x in lines if '"status":"ok"' not in x))
    with pytest.raises(NothingValid, match="was verified"):
        read_recording(tmp_path)


def test_nothing_is_dropped_at_a_rate_of_nothing(folder):
    assert Policy(drop_rate=0.0).samples == 7
    found = read_recording(folder)
    good = [len(s) for s, status in zip(found.samples, found.status, strict=True) if status is Status.OK]
    assert set(good) <= {1, 7}


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA GeForce RTX 3090", "rtx_3090"),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", "xeon"),
        ("", "device"),
    ],
)
def test_device_names_fit_into_file_names(name, slug):
    assert device_slug(name) == slug


def test_shapes_fit_into_file_names():
    assert shape_slug(Workload("matmul", (("M", 16), ("N", 8)), "float16")) == "m16-n8-float16"
