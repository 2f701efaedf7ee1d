"""A run that is killed again and again ends as an undisturbed one with the same seed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotune.journal import FILE, load_runs, read_journal
from autotune.records import TrialRecord
from search_spaces.errors import BadLog

HERE = Path(__file__).parents[2]
SCRIPT = HERE / "tests" / "support" / "recorded_run.py"
TRIALS = 150
MARK = "AUTOTUNE_TEST_RUN"
# The recorded device needs no compiler, and starting one would take longer than the run.
LIGHT = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ("tvm", "torch", "triton") else found(name, path, target)

PathFinder.find_spec = find_spec
"""


def start(folder, strategy, trials=TRIALS):
    light = folder.parent / "light"
    light.mkdir(exist_ok=True)
    (light / "sitecustomize.py").write_text(LIGHT)
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), str(trials), strategy],
        env={**os.environ, "PYTHONPATH": f"{light}:{HERE}", MARK: str(folder), "TMPDIR": str(folder.parent)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(folder, strategy, trials=TRIALS):
    run = start(folder, strategy, trials)
    _, err = run.communicate(timeout=170)
    assert run.returncode == 0, err


def read_trials(folder):
    return (record for record in read_journal(folder) if isinstance(record, TrialRecord))


def survivors(folder):
    """Processes that a run has left."""
    left = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                left.append(process)
        except psutil.Error:
            continue
    return left


def wait_until_none(folder):
    deadline = time.monotonic() + 20
    while (left := survivors(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


def found(folder):
    """Best schedule and its evidence, and what was tried with which result."""
    log = load_runs(folder)[0]
    race = log.races[-1]
    trials = {s: (m.status, m.seconds) for s, m in log.trials.items()}
    return (race.winner, race.over_default), trials


def journaled(folder):
    lines = (folder / FILE).read_text().splitlines()
    return [json.dumps(json.loads(x)["schedule"], sort_keys=True) for x in lines if '"kind":"trial"' in x]


@pytest.mark.slow
@pytest.mark.faults
def test_kill_9_at_twenty_random_moments(tmp_path):
    calm, killed = tmp_path / "calm", tmp_path / "killed"
    begun = time.monotonic()
    finish(calm, "evolutionary")
    whole = time.monotonic() - begun
    rng = np.random.default_rng(int(time.time()))
    kills = 0
    while kills < 20:
        run = start(killed, "evolutionary")
        try:
            run.communicate(timeout=rng.uniform(0.05, 1.0) * whole)
        except subprocess.TimeoutExpired:
            os.kill(run.pid, signal.SIGKILL)
            run.communicate()
            kills += 1
        wait_until_none(killed)
        try:
            load_runs(killed)
        except BadLog:
            assert not (killed / FILE).exists() or not (killed / FILE).read_bytes().count(b"\n"), "nothing was written"
        if run.returncode == 0:
            assert found(killed) == found(calm)
            killed = tmp_path / f"killed-{kills}"
    finish(killed, "evolutionary")
    assert found(killed) == found(calm)
    tried = journaled(killed)
    assert len(tried) == len(set(tried)) == TRIALS, "nothing is measured twice"


def test_the_journal_holds_what_the_model_expected(tmp_path):
    finish(tmp_path / "run", "hybrid", 60)
    (log,), trials = load_runs(tmp_path / "run"), list(read_trials(tmp_path / "run"))
    assert log.runs[-1].prior.startswith(("none", "shipped"))
    assert all(t.predicted is None for t in trials[:8])
    told = [(t.predicted, t.measurement().seconds) for t in trials[20:] if t.predicted is not None]
    errors = [abs(np.log(expected / seconds)) for expected, seconds in told if np.isfinite(seconds)]
    assert len(told) > 30
    assert np.median(errors) < np.log(1.5)


@pytest.mark.parametrize("strategy", ["random", "xgb", "hybrid", "exhaustive"])
def test_a_longer_run_goes_on_from_a_shorter_one(tmp_path, strategy):
    finish(tmp_path / "whole", strategy, 60)
    finish(tmp_path / "parts", strategy, 27)
    finish(tmp_path / "parts", strategy, 60)
    assert found(tmp_path / "parts") == found(tmp_path / "whole")


def test_what_another_strategy_tried_is_not_tried_again(tmp_path):
    finish(tmp_path / "run", "random", 30)
    finish(tmp_path / "run", "evolutionary", 60)
    tried = journaled(tmp_path / "run")
    assert len(tried) == len(set(tried)) == 60
