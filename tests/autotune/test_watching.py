"""A journal that grows, watched: what it has found, what is left, and when watching ends."""

import math
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from autotune.commands import watch
from autotune.journal import Journal
from autotune.measurement import Phases, Status
from autotune.records import GivenUpRecord, TrialRecord
from autotune.watching import Watched, expected_seconds, is_written
from search_spaces.errors import BadLog
from tests.support.journals import measurements, race_of, run_record, write_journal

HERE = Path(__file__).parents[2]
# Watches a run and says when it has begun to.
WATCH = """
import sys
from autotune.commands import watch
follow = watch._follow
watch._follow = lambda *arguments: (print("watching", flush=True), follow(*arguments))
watch.command.main([sys.argv[1]])
"""


def trial(number, at, build=1.0, device=0.1, run="r1"):
    measured = replace(measurements(1)[0], phases=Phases(build, 0.0, device))
    return TrialRecord.of(run, number, at, measured)


def test_it_takes_in_what_was_added_and_nothing_twice(tmp_path):
    watched = Watched(tmp_path)
    assert watched.read() == 0
    made = measurements(40)
    with Journal(tmp_path) as journal:
        journal.append(run_record(40))
        for number, measurement in enumerate(made[:10]):
            journal.append(TrialRecord.of("r1", number, float(number), measurement))
        assert watched.read() == 11
        assert (watched.done, watched.left, watched.ended) == (10, 30, False)
        for number, measurement in enumerate(made[10:], start=10):
            journal.append(TrialRecord.of("r1", number, float(number), measurement))
        journal.append(race_of(made))
        assert watched.read() == 31
        assert watched.read() == 0
    assert (watched.done, watched.left, watched.ended) == (40, 0, True)
    assert watched.best.measurement().seconds == min(m.seconds for m in made)
    assert watched.statuses["ok"] == sum(m.status is Status.OK for m in made)
    assert next(iter(watched.statuses)) == "ok"


def test_a_best_that_is_refuted_makes_room_for_the_next(tmp_path):
    fast, slow = sorted((m for m in measurements(40) if m.status is Status.OK), key=lambda m: m.seconds)[:2]
    with Journal(tmp_path) as journal:
        journal.append(run_record(2))
        for number, measurement in enumerate((fast, slow)):
            journal.append(TrialRecord.of("r1", number, 1.0, measurement))
        refuted = replace(fast, status=Status.WRONG_RESULT, samples=(), detail="turned wrong")
        journal.append(TrialRecord.of("r1", 0, 2.0, refuted))
    watched = Watched(tmp_path)
    watched.read()
    assert watched.best.schedule == dict(slow.schedule.items)
    assert watched.statuses == {"ok": 1, "wrong_result": 1}


def test_a_continued_run_counts_what_was_tried_before_and_starts_its_pace_anew(tmp_path):
    made = measurements(20)
    with Journal(tmp_path) as journal:
        journal.append(run_record(10))
        for number, measurement in enumerate(made[:10]):
            journal.append(TrialRecord.of("r1", number, 100.0 * number, measurement))
        journal.append(GivenUpRecord("r1", "it took too long"))
        journal.append(run_record(20, run="r2"))
        journal.append(TrialRecord.of("r2", 10, 1.0, made[10]))
    watched = Watched(tmp_path)
    watched.read()
    assert (watched.done, watched.left, len(watched.trials), watched.ended) == (11, 9, 1, False)
    assert watched.remaining(0.0) == 9 * 1.0


def test_the_time_left_follows_what_builds_and_runs_cost_now():
    """Builders, three at once, are what takes the time; the later half builds for twice as long."""
    rng = np.random.default_rng(0)
    builds = np.concatenate([rng.uniform(2, 4, 64), rng.uniform(5, 7, 64)])
    trials = [trial(i, at, build=b) for i, (at, b) in enumerate(zip(np.cumsum(builds / 3.0), builds, strict=True))]
    assert expected_seconds(trials, 60) == pytest.approx(60 * 6.0 / 3.0, rel=0.1)
    pace_so_far = 60 * trials[-1].at / len(trials)
    assert abs(expected_seconds(trials, 60) - 120.0) < 0.5 * abs(pace_so_far - 120.0)


def test_the_device_may_be_what_takes_the_time():
    rng = np.random.default_rng(1)
    on_device = rng.uniform(0.5, 1.5, 100)
    trials = [trial(i, at, device=d) for i, (at, d) in enumerate(zip(np.cumsum(on_device), on_device, strict=True))]
    assert expected_seconds(trials, 10) == pytest.approx(10.0, rel=0.15)


def test_too_few_trials_give_the_pace_so_far_and_none_no_guess():
    assert expected_seconds([trial(0, 4.0), trial(1, 6.0)], 10) == 30.0
    assert expected_seconds([], 10) == math.inf
    assert expected_seconds([trial(0, 4.0)], 0) == 0.0


def test_a_time_limit_bounds_what_is_left_and_waiting_counts(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(run_record(1000, minutes=1.0))
        journal.append(trial(0, 20.0))
    watched = Watched(tmp_path)
    watched.read()
    assert watched.remaining(0.0) == 40.0
    assert watched.remaining(15.0) == 25.0
    assert watched.remaining(90.0) == 0.0


def test_whether_a_run_writes_is_seen_and_never_in_its_way(tmp_path):
    assert not is_written(tmp_path)
    with Journal(tmp_path):
        assert is_written(tmp_path)
        assert is_written(tmp_path / "journal.jsonl")
    assert not is_written(tmp_path)
    Journal(tmp_path).close()


def test_a_finished_run_is_shown_once(tmp_path):
    made = write_journal(tmp_path, 60)
    shown = CliRunner().invoke(watch.command, [str(tmp_path)], catch_exceptions=False).stdout
    assert "done" in shown
    assert "60/60" in shown
    assert f"{sum(m.status is Status.OK for m in made)} ok" in shown
    for words in ("roofline", "over default", "over library", "a second"):
        assert words in shown


def test_a_run_that_was_given_up_and_one_that_was_stopped_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "_STILL_SECONDS", 0.0)
    write_journal(tmp_path / "stopped", 20, raced=False)
    shown = CliRunner().invoke(watch.command, [str(tmp_path / "stopped")], catch_exceptions=False).stdout
    assert "racing" not in shown
    assert "stopped" in shown
    write_journal(tmp_path / "given_up", 20, raced=False)
    with Journal(tmp_path / "given_up") as journal:
        journal.append(GivenUpRecord("r1", "gone with SIGKILL"))
    shown = CliRunner().invoke(watch.command, [str(tmp_path / "given_up")], catch_exceptions=False).stdout
    assert "given up, gone with SIGKILL" in shown


def test_watching_ends_with_the_run(tmp_path):
    made = measurements(30)

    def run():
        with Journal(tmp_path) as journal:
            opened.set()
            time.sleep(0.6)
            journal.append(run_record(30))
            for number, measurement in enumerate(made):
                journal.append(TrialRecord.of("r1", number, 0.1 * number, measurement))
            time.sleep(0.6)
            journal.append(race_of(made))

    opened = threading.Event()
    writer = threading.Thread(target=run)
    writer.start()
    opened.wait(10)
    shown = CliRunner().invoke(watch.command, [str(tmp_path)], catch_exceptions=False).stdout
    writer.join()
    assert "done" in shown
    assert "30/30" in shown


def test_ctrl_c_leaves_the_run_alone(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(run_record(30))
        journal.append(trial(0, 1.0))
        words = [sys.executable, "-c", WATCH, str(tmp_path)]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=HERE)
        assert process.stdout.readline() == "watching\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "the run goes on" in out
    assert not err


def test_what_is_no_run_is_said(tmp_path):
    with pytest.raises(BadLog, match="no journal at"):
        CliRunner().invoke(watch.command, [str(tmp_path / "nothing")], catch_exceptions=False)
    (tmp_path / "journal.jsonl").write_text("{}\n")
    with pytest.raises(BadLog, match="is not a journal"):
        CliRunner().invoke(watch.command, [str(tmp_path)], catch_exceptions=False)
