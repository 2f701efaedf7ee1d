"""Two tuners never share a device; the second says whom it waits for, and how it can end."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue, device_lock
from search_spaces.errors import CannotWrite, NoDevice

HERE = Path(__file__).parents[3]
TOY = HERE / "tests" / "support" / "toy.py"
INFO = DeviceInfo("cuda", "Some GPU", "sm_90", 1, 1)
HOLD = """
import sys, time
from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue, device_lock
with device_lock(DeviceInfo("cuda", "Some GPU", "sm_90", 1, 1), sys.argv[1], Queue()):
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""

NAMELESS = """
import sys, time
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    time.sleep(99)
"""


@pytest.fixture(autouse=True)
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_LOCK_DIR", str(tmp_path / "locks"))
    return tmp_path / "locks"


def holder(seconds, uuid="one"):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, uuid, str(seconds)],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_waits_and_says_for_whom():
    first, lines = holder(1.0), []
    with device_lock(INFO, "one", Queue(notice=lines.append)):
        assert first.poll() is not None or first.wait(1) == 0
    assert len(lines) == 1
    assert "waiting: Some GPU is in use by another tuner" in lines[0]
    assert f"process {first.pid}" in lines[0]


def test_the_second_is_refused_when_its_patience_ends():
    first = holder(60)
    with pytest.raises(NoDevice, match=f"process {first.pid}.*--wait"), device_lock(INFO, "one", Queue(0.3)):
        pass
    first.kill()
    first.wait()


def test_a_wait_can_be_stopped():
    first = holder(60)
    with pytest.raises(KeyboardInterrupt), device_lock(INFO, "one", Queue(stop=lambda: True)):
        pass
    first.kill()
    first.wait()


def test_another_device_is_free():
    first = holder(60)
    with device_lock(INFO, "two", Queue(0.0)):
        pass
    first.kill()
    first.wait()


def test_a_killed_holder_lets_go():
    first = holder(60)
    first.kill()
    first.wait()
    with device_lock(INFO, "one", Queue(5.0)):
        pass


def test_a_folder_that_others_can_write_to_is_refused(locks):
    locks.mkdir()
    locks.chmod(0o777)
    with pytest.raises(CannotWrite, match="not private"), device_lock(INFO, "one", Queue()):
        pass


def tune(folder, *more):
    common = [sys.executable, "-m", "autotune", "run", "--op", f"{TOY}:Toy", "--target", "llvm", "--strategy", "random"]
    return subprocess.Popen(
        [*common, "--trials", "12", "--out", str(folder), *more],
        env={**os.environ, "PYTHONPATH": str(HERE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_two_runs_take_turns(tmp_path, locks):
    runs = [tune(tmp_path / name) for name in ("a", "b")]
    ends = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], ends
    waits = [err for _, err in ends if "waiting: " in err]
    assert len(waits) == 1
    assert any(f"process {run.pid}" in waits[0] for run in runs)


def test_a_run_that_waits_ends_at_a_signal_or_at_its_limit(tmp_path, locks):
    lock = locks / "llvm-host.lock"
    locks.mkdir(mode=0o700)
    held = subprocess.Popen(
        [
            sys.executable,
            "-c",
            NAMELESS,
            str(lock),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert held.stdout.readline() == "held\n"
    refused, ends = tune(tmp_path / "a", "--wait", "0"), {signal.SIGINT: 130, signal.SIGTERM: 0}
    for number, code in ends.items():
        stopped = tune(tmp_path / number.name)
        line = stopped.stderr.readline()
        while line and "waiting" not in line:
            line = stopped.stderr.readline()
        assert "which does not say its process" in line
        stopped.send_signal(number)
        _, err = stopped.communicate(timeout=60)
        assert (stopped.returncode, "Traceback" in err) == (code, False)
    assert "in use by another tuner" in refused.communicate(timeout=60)[1]
    assert refused.returncode == 4
    held.kill()
    held.wait()
