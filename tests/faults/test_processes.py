"""Processes that are killed, stopped or starved: the run goes on, or goes on when it is resumed."""

import os
import signal
import subprocess
import sys

import pytest

from autotune.measurement import Status
from tests.support.faults import OPERATOR, RESUME, ROOT, TUNE, end, intact, trials_in, wait_until, whole

# Seconds that a candidate may take where a test waits for that.
LIMIT = 20.0
SCRIPT = ROOT / "tests" / "support" / "fragile_run.py"


def pid_of(place, trick):
    """The process that plays a trick now."""
    mark = place.tricks / f"{trick}.pid"
    return int(wait_until(lambda: mark.exists() and mark.read_text()))


def of_trick(trials, trick):
    return [t for t in trials if t.schedule["trick"] == trick]


def others_ran(trials, trick):
    return all(t.status is Status.OK for t in trials if t.schedule["trick"] != trick)


def test_a_device_worker_that_is_killed_costs_one_trial(place):
    place.play("wait")
    run = place.start(*TUNE, "--out", place.run)
    worker = pid_of(place, "wait")
    (place.tricks / "wait").unlink()
    os.kill(worker, signal.SIGKILL)
    end(run)
    trials = whole(place.run)
    (lost,) = [t for t in trials if t.status is not Status.OK]
    assert (lost.status, lost.schedule["trick"]) == (Status.CRASHED, "wait")
    assert "SIGKILL" in lost.detail


def test_a_builder_out_of_memory_costs_its_trials(place):
    """The limit is the user's own, as `ulimit -d` sets it; what the system would do is the next test."""
    place.play("memory")
    place.autotune(*TUNE, "--out", place.run, limits=f"-d {3 << 20}")
    trials = whole(place.run)
    assert others_ran(trials, "memory")
    assert {t.status for t in of_trick(trials, "memory")} == {Status.BUILD_ERROR}
    assert all("MemoryError" in t.detail for t in of_trick(trials, "memory"))


def test_a_builder_that_the_system_kills_costs_its_trials(place):
    place.play("killed")
    place.autotune(*TUNE, "--out", place.run)
    trials = whole(place.run)
    assert others_ran(trials, "killed")
    assert {t.status for t in of_trick(trials, "killed")} == {Status.CRASHED}
    assert all("SIGKILL" in t.detail for t in of_trick(trials, "killed"))


def test_a_killed_run_leaves_no_process_and_is_resumed(place):
    place.play("wait")
    run = place.start(*TUNE, "--out", place.run)
    pid_of(place, "wait")
    (place.tricks / "wait").unlink()
    assert len(place.processes()) > 1
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    wait_until(lambda: not place.processes(), 60.0)
    before = intact(place.run)
    assert place.resumed()[: len(before)] == before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)], ids=["SIGTERM", "SIGINT"])
def test_a_stopped_run_saves_says_how_to_go_on_and_tells_a_batch_system_that_all_is_well(place, number, code):
    run = place.start(*TUNE, "--out", place.run)
    wait_until(lambda: trials_in(place.run) >= 3)
    run.send_signal(number)
    out, _ = end(run, code)
    assert "stopped; resume with: autotune run --resume" in out
    assert (place.run / "tuned-log.json").exists()
    before = intact(place.run)
    assert place.resumed()[: len(before)] == before


def test_sigterm_before_anything_ran_is_no_failure_either(place):
    place.play("wait")
    place.play("pause")
    run = place.start(*TUNE, "--out", place.run)
    wait_until((place.run / "lock.pid").exists)
    run.send_signal(signal.SIGTERM)
    out, err = end(run, 0)
    assert "go on with: autotune run --resume" in out + err or "resume with" in out
    for trick in ("wait", "pause"):
        (place.tricks / trick).unlink()


def test_a_second_run_in_the_same_folder_is_told_who_writes_there(place):
    place.play("wait")
    first = place.start(*TUNE, "--out", place.run)
    worker = pid_of(place, "wait")
    _, err = place.autotune(*RESUME, place.run, code=7)
    assert f"another run writes to {place.run}, process {first.pid} (" in err
    assert len(err.strip().splitlines()) == 1
    (place.tricks / "wait").unlink()
    os.kill(worker, signal.SIGKILL)
    end(first)
    whole(place.run)


def test_a_laptop_that_slept_fails_no_candidate(place):
    """All processes stand still for longer than a candidate may take, as they do while a machine is suspended."""
    place.play("pause")
    words = [sys.executable, str(SCRIPT), str(place.run), str(LIMIT)]
    run = subprocess.Popen(words, env=place.variables(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid_of(place, "pause")
    (place.tricks / "pause").unlink()
    asleep = place.processes()
    for process in asleep:
        process.suspend()
    with pytest.raises(subprocess.TimeoutExpired):
        run.wait(LIMIT + 3.0)
    for process in asleep:
        process.resume()
    end(run)
    assert {t.status for t in whole(place.run)} == {Status.OK}


def test_the_operator_is_what_the_tests_take_it_for(place):
    out, _ = place.autotune("space", "--op", OPERATOR, "--target", "llvm")
    assert "20" in out
