"""What candidates' processes may use is limited."""

import ctypes
import os
import resource
from pathlib import Path

import pytest

from autotune.limits import MOST_FILE_BYTES, MOST_FILES, memory_bytes
from autotune.process import Child, Died

_PR_GET_NO_NEW_PRIVS = 39
KINDS = ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_DATA")


def doing():
    return lambda job: job()


def limits():
    found = {kind: resource.getrlimit(getattr(resource, kind)) for kind in KINDS}
    return found, ctypes.CDLL(None).prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)


def fill_memory():
    size = memory_bytes() + (1 << 30)
    try:
        return len(bytearray(size))
    except MemoryError:
        return "MemoryError"


def write_for_ever():
    with Path("endless").open("wb") as file:
        file.truncate(MOST_FILE_BYTES)
        file.seek(MOST_FILE_BYTES)
        file.write(b"x")
        file.flush()


@pytest.fixture
def child(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = Child(doing, (), tmp_path / "child.log")
    yield lambda job: (made.send(job, 120), made.answer())[1]
    made.kill()


def test_a_builders_and_a_cpu_workers_limits(child):
    found, no_new_privileges = child(limits)
    assert found["RLIMIT_CORE"] == (0, 0)
    assert found["RLIMIT_FSIZE"] == (MOST_FILE_BYTES, MOST_FILE_BYTES)
    assert 0 < found["RLIMIT_NOFILE"][1] <= MOST_FILES
    assert 0 < found["RLIMIT_DATA"][1] <= memory_bytes()
    assert no_new_privileges == 1


def test_a_gpu_workers_limits_leave_its_memory_alone(tmp_path):
    worker = Child(doing, (), tmp_path / "child.log", fresh=True)
    worker.send(limits, 120)
    found, no_new_privileges = worker.answer()
    worker.kill()
    assert found["RLIMIT_CORE"] == (0, 0)
    assert found["RLIMIT_FSIZE"] == (MOST_FILE_BYTES, MOST_FILE_BYTES)
    assert found["RLIMIT_DATA"] == resource.getrlimit(resource.RLIMIT_DATA)
    assert no_new_privileges == 0


def test_more_memory_than_there_is_fails_there_and_then(child):
    assert child(fill_memory) == "MemoryError"


def test_an_endless_file_ends(child):
    answer = child(write_for_ever)
    assert "File too large" in answer.summary


def test_a_crash_leaves_no_core_file(child, tmp_path):
    with pytest.raises(Died, match="SIGABRT"):
        child(os.abort)
    assert not list(tmp_path.glob("core*"))
