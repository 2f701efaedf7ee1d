"""Runs to be hurt: real processes of the command line, and what must hold of their folders afterwards."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from autotune.journal import load_runs, read_journal
from autotune.measurement import Status
from autotune.records import RaceRecord, RunRecord, TrialRecord
from autotune.tuned_log import read_tuned_log
from tests.support.fragile import TILES, TRICKS

ROOT = Path(__file__).parents[2]
OPERATOR = f"{Path(__file__).parent / 'fragile.py'}:Fragile"
SPACE = len(TILES) * len(TRICKS)
_QUICK = ("--op", OPERATOR, "--l2", "hot", "--quiet")
TUNE = ("run", *_QUICK, "--target", "llvm", "--strategy", "random", "--trials", "100")
RESUME = ("run", *_QUICK, "--resume")
MARK = "AUTOTUNE_TEST_FAULT"
# The fragile operator needs no compiler, and starting one would take longer than a run.
_LIGHT = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ("tvm", "torch", "triton") else found(name, path, target)

PathFinder.find_spec = find_spec
"""


class Place:
    """A folder for one test: runs are started in it, and `run` is where they leave what they found.

    Args:
        folder: The folder.
    """

    def __init__(self, folder):
        self.folder = folder
        self.run = folder / "run"
        self.tricks = folder / "tricks"
        self.scratch = folder / "scratch"
        for made in (folder / "light", self.tricks, self.scratch):
            made.mkdir()
        (folder / "light" / "sitecustomize.py").write_text(_LIGHT)

    def variables(self, **more):
        """The environment of a run; all of its processes are told by it."""
        path = f"{self.folder / 'light'}{os.pathsep}{ROOT}"
        own = {"PYTHONPATH": path, MARK: str(self.folder), "TMPDIR": str(self.scratch), "FRAGILE": str(self.tricks)}
        return {**os.environ, **own, **more}

    def play(self, trick):
        """Lets schedules of a trick play it from now on."""
        (self.tricks / trick).touch()

    def start(self, *arguments, limits="-c 0", **variables):
        """A run, as `autotune ARGUMENTS`, under limits as the shell's `ulimit` takes them."""
        return subprocess.Popen(
            ["sh", "-c", f'ulimit {limits} && exec "$@"', "sh", sys.executable, "-m", "autotune", *map(str, arguments)],
            cwd=self.folder,
            env=self.variables(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def autotune(self, *arguments, code=0, **more):
        """The same to its end, which must be this one; what it printed."""
        return end(self.start(*arguments, **more), code)

    def resumed(self, folder=None):
        """Goes on with a run that was hurt, to its end, and holds its journal to what must be true of it."""
        self.autotune(*RESUME, folder or self.run)
        return whole(folder or self.run)

    def processes(self):
        """Processes that runs in this folder have left."""
        left = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get(MARK) == str(self.folder) and process.status() != psutil.STATUS_ZOMBIE:
                    left.append(process)
        return left


def end(process, code=0):
    """Waits for the end of a run, which must have this code and no traceback; its output and errors."""
    out, err = process.communicate(timeout=280)
    assert process.returncode == code, out + err
    assert "Traceback" not in out + err
    return out, err


def wait_until(true, seconds=120.0):
    """Waits until a function tells something true, which it returns."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError("it never came")


def trials_in(folder):
    """Trials that a journal holds by now, as whole lines."""
    journal = folder / "journal.jsonl"
    return journal.read_bytes().count(b'"kind":"trial"') if journal.exists() else 0


def intact(folder):
    """Reads every record of a journal that a fault has hit, each held to its type; its trials."""
    records = list(read_journal(folder))
    assert isinstance(records[0], RunRecord)
    trials = [r for r in records if isinstance(r, TrialRecord)]
    assert all((t.status is Status.OK) == bool(t.samples) for t in trials)
    assert [t.trial for t in trials] == list(range(len(trials))), "none lost, none twice"
    assert len({str(t.schedule) for t in trials}) == len(trials)
    return trials


def whole(folder):
    """What must be true of a run at its end: all schedules tried once, a race, a tuned log. Gives its trials."""
    trials = intact(folder)
    assert len(trials) == SPACE
    assert isinstance(list(read_journal(folder))[-1], RaceRecord)
    (log,) = load_runs(folder)
    assert log.best is not None
    (entry,) = read_tuned_log(folder / "tuned-log.json").entries
    assert entry.raced
    return trials


@contextlib.contextmanager
def mounted(folder, size):
    """A small file system of memory at `folder`, which must not be needed at the end."""
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("needs the right to mount")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def remount(folder, options):
    """Changes a mounted file system."""
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
