"""Ten thousand trials: memory stays flat in every process, and no process is left."""

import statistics
import time
from pathlib import Path

import psutil
import pytest

from autotune.journal import load_runs
from search_spaces.registry import load_file

TRIALS = 10_000
# A trial that is kept for the model, the race and the report: its schedule and its samples.
BYTES_PER_TRIAL = 3072
# What allocators of builders and worker may grow by; whatever they kept of a trial would be more.
CHILD_BYTES_PER_TRIAL = 1024


class MemoryWatch:
    """A tracker that reads the memory of this process and of the device worker every few hundred trials."""

    def __init__(self):
        self.main = []
        self.children = []

    def measured(self, measurement, done, budget):
        if done % 500 == 0:
            self.main.append(psutil.Process().memory_info().rss)
            sizes = [p.memory_info().rss for p in psutil.Process().children(recursive=True)]
            self.children.append(sum(sizes))

    def waiting(self, done, budget):
        pass

    def notice(self, line):
        raise AssertionError(line)


@pytest.mark.slow
def test_ten_thousand_trials(tmp_path):
    watch = MemoryWatch()
    before = set(psutil.Process().children(recursive=True))
    recorded = load_file(Path(__file__).parents[1] / "support" / "recorded.py")
    outcome = recorded.tune_recorded(tmp_path / "run", TRIALS, "random", trackers=[watch])
    assert outcome.new_trials == TRIALS
    assert len(load_runs(tmp_path / "run")[0].trials) == TRIALS
    children = statistics.mean(watch.children[-4:]) - statistics.mean(watch.children[2:6])
    assert children < TRIALS * CHILD_BYTES_PER_TRIAL, "builders and worker keep nothing of a trial"
    main = statistics.mean(watch.main[-4:]) - statistics.mean(watch.main[2:6])
    assert main < TRIALS * BYTES_PER_TRIAL, "this process keeps the trials and nothing else"
    deadline = time.monotonic() + 10
    while left := {p for p in psutil.Process().children(recursive=True) if p not in before and not is_server(p)}:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


def is_server(process):
    """The process server and the resource tracker of multiprocessing serve every run of this process."""
    try:
        command = " ".join(process.cmdline())
    except psutil.Error:
        return True
    return "forkserver" in command or "resource_tracker" in command
