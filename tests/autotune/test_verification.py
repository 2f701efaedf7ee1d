"""Winners are measured again: which hold, which do not, and why, for every reading policy."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autotune import task_options
from autotune.device_here import asked, device_here
from autotune.devices.cpu import cpu_info
from autotune.identity import Reading
from autotune.records import TaskData
from autotune.task_options import TaskOptions, make_task
from autotune.tuned_log import RunnerUp, entries_of
from autotune.verification import Rules, State, prepare, verify
from search_spaces.errors import OtherIdentity
from search_spaces.schedule import Schedule

HERE = Path(__file__).parents[2]
# Wide, so that a busy machine does not decide.
ROOMY = Rules(tolerance=5.0)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    shutil.copy(HERE / "tests" / "support" / "toy.py", folder / "toy.py")
    named = ("run", "--op", f"{folder / 'toy.py'}:Toy", "--strategy", "random", "--trials", "40", "--quiet")
    subprocess.run(
        [sys.executable, "-m", "autotune", *named, "--out", "run"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        check=True,
        timeout=120,
    )
    (entry,) = entries_of(folder / "run")
    assert entries_of(folder / "run" / "tuned-log.json") == [entry]
    return entry


@pytest.fixture(autouse=True)
def known_roof(monkeypatch):
    monkeypatch.setattr(task_options, "measured_peak", lambda cores: 1e12)
    monkeypatch.setattr(task_options, "measured_bandwidth", lambda: 1e11)


def outcome(entry, rules=ROOMY):
    rules = replace(rules, operators=(entry.task.reference,))
    (case,) = prepare([entry], rules)
    return verify(case, rules)


def changed(entry, **fields):
    return msgspec.structs.replace(entry, **fields)


def with_knobs(entry, **knobs):
    return changed(entry, schedule={**entry.schedule, **knobs})


def test_a_winner_that_still_wins_holds(recorded):
    found = outcome(recorded)
    assert (found.state, found.why) == (State.HOLDS, "")
    assert found.over_default.low > 1.0
    assert found.seconds > 0
    assert found.judgement.differences == ()
    assert not found.judgement.must_verify


def test_one_that_takes_longer_than_recorded_does_not(recorded):
    found = outcome(changed(recorded, seconds=recorded.seconds / 50))
    assert found.state is State.SLOWER
    assert "longer than recorded" in found.why


def test_one_that_does_not_beat_the_default_does_not_and_a_runner_up_is_named(recorded):
    slow = with_knobs(recorded, tile=16, width=4)
    best = RunnerUp(recorded.schedule, recorded.seconds)
    found = outcome(changed(slow, runners_up=(best,)))
    assert found.state is State.SLOWER
    assert "default" in found.why
    assert found.fastest == Schedule.from_json(recorded.schedule)
    assert found.fastest_over_default.low > 1.0
    only = outcome(changed(slow, runners_up=(best,)), replace(ROOMY, top=1))
    assert only.fastest != Schedule.from_json(recorded.schedule)


def test_the_default_as_its_own_winner_holds(recorded):
    found = outcome(changed(recorded, schedule=make(recorded).default.to_json(), seconds=1.0))
    assert (found.state, found.why) == (State.HOLDS, "it is the untuned default")


@pytest.mark.parametrize(
    ("knobs", "why"),
    [({"tile": 3}, "tile=3 is not a value of that knob"), ({"tile": 1, "width": 4}, "wider than its tile")],
)
def test_a_schedule_that_is_not_in_the_space_any_more_says_why(recorded, knobs, why):
    found = outcome(with_knobs(recorded, **knobs))
    assert found.state is State.INVALID
    assert why in found.why
    assert found.seconds is None


def make(entry, **options):
    return make_task(replace(TaskOptions.of(entry.task), **options), measure_roof=True)


@pytest.mark.parametrize("trick", ["wrong", "build_error", "abort"])
def test_one_that_fails_here_says_how(recorded, trick):
    task = TaskData.of(make(recorded, shape="tricks=1"))
    found = outcome(changed(with_knobs(recorded, trick=trick), task=task, runners_up=()))
    assert found.state is State.INVALID
    assert found.why.startswith({"wrong": "wrong result", "build_error": "build error", "abort": "crashed"}[trick])


def test_an_operator_that_is_gone_is_told(recorded):
    gone = changed(recorded, task=replace(recorded.task, reference="gone.py:Toy"))
    found = outcome(gone)
    assert found.state is State.INVALID
    assert "no file" in found.why
    with pytest.raises(OtherIdentity, match="gone"):
        prepare([gone], replace(ROOMY, policy=Reading.REFUSE, operators=("gone.py:Toy",)))


def elsewhere(entry):
    return changed(entry, device=replace(entry.device, name="another CPU", units=96), seconds=entry.seconds / 50)


def test_a_device_asked_in_a_process_of_its_own_says_the_same(tmp_path):
    assert asked("llvm", tmp_path) == device_here("llvm", tmp_path) == cpu_info()


def test_compatible_verifies_another_devices_record_here_and_says_so(recorded):
    found = outcome(elsewhere(recorded))
    assert found.state is State.HOLDS, "its seconds are not held against this device's"
    assert found.judgement.must_verify
    assert {d.field for d in found.judgement.differences} == {"device name", "device units"}


def test_exact_passes_it_over_and_refuse_stops(recorded):
    found = outcome(elsewhere(recorded), replace(ROOMY, policy=Reading.EXACT))
    assert found.state is State.OTHER_DEVICE
    assert "another CPU recorded" in found.why
    assert found.seconds is None
    trusting = replace(ROOMY, policy=Reading.REFUSE, operators=(recorded.task.reference,))
    with pytest.raises(OtherIdentity, match="device name"):
        prepare([recorded, elsewhere(recorded)], trusting)


def test_a_sketch_whose_source_has_changed_is_not_comparable(recorded):
    old = replace(recorded.task, sketches={"toy.loops": "older"})
    found = outcome(changed(recorded, task=old))
    assert found.state is State.DIFFERS
    assert "sketch toy.loops" in found.why
