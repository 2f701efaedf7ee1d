"""Runs on several devices: who measures, whose times count, and what becomes of other, slow and lost devices."""

import os
import signal
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue, device_lock
from autotune.executors.base import Measuring, Site
from autotune.executors.local import Local
from autotune.journal import read_journal
from autotune.measurement import Policy, Status
from autotune.measurer import Measurer
from autotune.records import DeviceRecord, TrialRecord
from autotune.tune import Settings, tune
from search_spaces.errors import AutotuneError, NoDevice
from search_spaces.registry import load_file
from search_spaces.space import Schedule

SUPPORT = Path(__file__).parents[1] / "support"
cores = load_file(SUPPORT / "cores.py")
recorded = cores.recorded
TASK = recorded.recorded_task()


def schedules(count):
    """The default, and others that build."""
    values = recorded.VALUES[:7]
    made = [(values[i % 7], values[i // 7 % 7], *values[2:5]) for i in range(count - 1)]
    return [TASK.default, *(Schedule((TASK.default.items[0], *zip(recorded.KNOBS, m, strict=True))) for m in made)]


def measurer(folder, devices="", **queue):
    policy = Policy(samples=5, drop_rate=0.0, run_seconds=30.0)
    return Measurer(Local(Site(devices=devices), folder), Measuring(TASK, policy, cores.NAME), 2, Queue(**queue))


def drain(made, each=lambda: None):
    done = {}
    while made.in_flight:
        each()
        for measurement in made.completed(0.05):
            assert measurement.schedule not in done, "each comes back once"
            done[measurement.schedule] = measurement
    return done


class Watcher:
    def __init__(self):
        self.lines = []

    def notice(self, line):
        self.lines.append(line)

    def measured(self, *_):
        pass

    waiting = measured


def tuned(folder, trials=24, devices="", settings=None):
    watcher = Watcher()
    given = Settings(strategy="random", trials=trials, seed=3, jobs=2, device=cores.NAME, site=Site(devices=devices))
    outcome = tune(TASK, settings or given, folder, [watcher])
    records = list(read_journal(folder))
    trials = [r for r in records if isinstance(r, TrialRecord)]
    return outcome, trials, [r for r in records if isinstance(r, DeviceRecord)], watcher.lines


def test_devices_share_the_candidates_and_each_is_measured_once(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {}, {})
    with closing(measurer(tmp_path)) as made:
        made.device()
        asked = schedules(30)
        made.submit(asked)
        done = drain(made)
        news = made.news()
    assert set(done) == set(asked)
    assert set(Counter(m.device for m in done.values())) == {"core-0", "core-1"}
    assert [m.seconds for m in done.values()] == pytest.approx([recorded.seconds_of(s) for s in done])
    assert {(n.device, n.factor, n.notice) for n in news} == {("core-0", 1.0, ""), ("core-1", 1.0, "")}


def test_one_device_is_compared_with_none(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {"calls": str(tmp_path / "calls")}, {})
    with closing(measurer(tmp_path, "0")) as made:
        made.device()
        made.submit([TASK.default])
        assert drain(made)[TASK.default].device == "core-0"
        assert not made.news()


def test_a_slower_device_is_corrected_and_the_journal_says_so(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {"speed": 1.05}, {})
    outcome, trials, devices, lines = tuned(tmp_path / "run")
    factors = {d.device: d.factor for d in devices}
    assert factors == {"core-0": pytest.approx(1 / 1.05), "core-1": 1.0}
    assert lines == ["times of device core-0 are multiplied by 0.952"]
    by = Counter(t.device for t in trials if t.status is Status.OK)
    assert min(by["core-0"], by["core-1"]) > 0
    for trial in trials:
        if trial.status is Status.OK:
            schedule = Schedule.from_json(trial.schedule)
            assert trial.samples == pytest.approx([recorded.seconds_of(schedule)] * len(trial.samples))
    # Raced on the reference, whose times are what it measures.
    assert outcome.race.seconds == pytest.approx(recorded.seconds_of(outcome.race.winner))
    assert [d.device for d in outcome.log.devices] == [d.device for d in devices]


def test_a_device_that_is_far_off_is_left_out(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {"speed": 1.3}, {})
    _, trials, devices, lines = tuned(tmp_path / "run")
    out = [d for d in devices if d.left_out]
    assert [d.device for d in out] == ["core-0"]
    assert lines == ["device core-0 is left out: the untuned default takes 1.30 times as long as on another"]
    assert {t.device for t in trials if t.status is Status.OK} == {"core-1"}


def test_a_resumed_run_compares_devices_by_a_default_that_it_does_not_measure_again(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {}, {"speed": 0.95})
    tuned(tmp_path / "run", 8, devices="0")
    _, trials, devices, _ = tuned(tmp_path / "run", 20)
    assert len(trials) == 20
    assert len({str(t.schedule) for t in trials}) == 20
    assert {d.device for d in devices} == {"core-0", "core-1"}


def test_unlike_devices_share_no_run(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {}, {"name": "another core", "power": "7 W"})
    with (
        closing(measurer(tmp_path, "all")) as made,
        pytest.raises(AutotuneError, match="devices 0 and 1 are not alike: model a core and another core, power"),
    ):
        made.device()
    with closing(measurer(tmp_path)) as made:
        assert made.device().name == "a core"
        made.submit(schedules(5))
        assert {m.device for m in drain(made).values()} == {"core-0"}
        (news,) = made.news()
    assert news.notice.startswith("device core-1 is left out: devices 0 and 1 are not alike")


@pytest.mark.parametrize("devices", ["2", "0,7", "zero", ""])
def test_devices_that_are_not_there(tmp_path, monkeypatch, devices):
    cores.set_cores(monkeypatch, {}, {}) if devices else cores.set_cores(monkeypatch)
    with pytest.raises(
        AutotuneError, match="which is not here; write all, or what you want of 0,1" if devices else "no device"
    ):
        measurer(tmp_path, devices)


def other_tuner(number):
    return device_lock(DeviceInfo("llvm", "a core", "", 1, 1), f"core-{number}", Queue(0.0))


def test_a_device_in_use_is_left_to_its_tuner_unless_it_was_named(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {}, {})
    with other_tuner(0), closing(measurer(tmp_path)) as made:
        made.device()
        made.submit(schedules(4))
        assert {m.device for m in drain(made).values()} == {"core-1"}
        assert "core-0 is left out: a core is in use by another tuner" in made.news()[0].notice
    in_use = pytest.raises(NoDevice, match="in use")
    with other_tuner(1), closing(measurer(tmp_path, "0,1", seconds=0.0)) as made, in_use:
        made.device()
    with other_tuner(0), other_tuner(1), closing(measurer(tmp_path, seconds=0.0)) as made, in_use:
        made.device()


def test_a_killed_worker_costs_its_candidate_alone(tmp_path, monkeypatch):
    notes = tmp_path / "calls"
    cores.set_cores(monkeypatch, {}, {"calls": str(notes)})
    killed = []

    def kill():
        """Once, while core 1 has a candidate: stopped first, so that it is still at it."""
        lines = notes.read_text().splitlines() if notes.exists() else []
        if not killed and lines.count("timed") > 4:
            killed.append(int(lines[0].split()[1]))
            os.kill(killed[0], signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(killed[0], signal.SIGKILL)

    with closing(measurer(tmp_path)) as made:
        made.device()
        asked = schedules(24)
        made.submit(asked)
        done = drain(made, kill)
        assert not any(n.left_out for n in made.news())
    ended = Counter(m.status for m in done.values())
    assert set(done) == set(asked)
    assert ended[Status.CRASHED] <= 1
    assert ended[Status.OK] >= 23
    starts = [line for line in notes.read_text().splitlines() if line.startswith("started")]
    assert len(starts) == 2, "it was started again"


def test_a_lost_device_is_left_out_and_its_candidate_measured_elsewhere(tmp_path, monkeypatch):
    lost, notes = tmp_path / "lost", tmp_path / "calls"
    cores.set_cores(monkeypatch, {"lost": str(lost), "calls": str(notes)}, {})

    def lose():
        if notes.exists() and notes.read_text().count("timed") > 4:
            lost.touch()

    with closing(measurer(tmp_path)) as made:
        made.device()
        asked = schedules(24)
        made.submit(asked)
        done = drain(made, lose)
        (left,) = [n for n in made.news() if n.left_out]
    assert {m.status for m in done.values()} == {Status.OK}
    assert set(done) == set(asked)
    assert left.device == "core-0"
    assert "unspecified launch failure" in left.left_out
    assert len([line for line in notes.read_text().splitlines() if line.startswith("started")]) == 4, "three tries"


def test_the_last_device_lost_ends_the_run(tmp_path, monkeypatch):
    lost = tmp_path / "lost"
    cores.set_cores(monkeypatch, {"lost": str(lost)}, {"lost": str(lost)})
    with closing(measurer(tmp_path)) as made:
        made.device()
        made.submit(schedules(20))
        assert made.completed(30.0) is not None
        lost.touch()
        with pytest.raises(NoDevice, match="unspecified launch failure"):
            drain(made)


def test_a_device_on_which_the_default_fails_is_left_out(tmp_path, monkeypatch):
    cores.set_cores(monkeypatch, {}, {"speed": 1e-9})
    with closing(measurer(tmp_path)) as made:
        made.device()
        made.submit(schedules(20))
        done = drain(made)
        (left,) = [n for n in made.news() if n.left_out]
    assert left.notice == "device core-1 is left out: the untuned default fails on it"
    assert {m.status for m in done.values()} == {Status.OK}
    assert {m.device for m in done.values()} == {"core-0"}
