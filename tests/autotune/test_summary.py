"""What is said of a winner that was not raced: stopped by the user, or given up with the device's worker."""

from pathlib import Path

import pytest
from rich.console import Console

from autotune.finals import Finals
from autotune.journal import load_runs
from autotune.measurement import Policy
from autotune.runner import Died
from autotune.summary import print_outcome, verdict
from autotune.tune import Settings, tune
from autotune.tuned_log import entries_of
from search_spaces.hardware import cpu_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

TOY = f"{Path(__file__).parents[1] / 'support' / 'toy.py'}:Toy"


@pytest.fixture
def tune_toy(tmp_path):
    hardware = cpu_hardware("test", 2, 1 << 20, 1e12, {"float32": 1e13})
    task = Task(TOY, find_operator(TOY).workload("llvm"), Target("llvm"), hardware)
    settings = Settings(strategy="random", policy=Policy(samples=3))

    def run(trials):
        return tune(task, Settings(**{**vars(settings), "trials": trials}), tmp_path / "run")

    return run


@pytest.mark.parametrize(
    ("error", "why"), [(Died("gone with SIGKILL"), "gone with SIGKILL"), (TimeoutError(), "too long")]
)
def test_a_race_that_was_given_up_is_told_from_one_that_was_never_begun(tune_toy, monkeypatch, error, why):
    def race(*_):
        raise error

    monkeypatch.setattr(Finals, "race", race)
    outcome = tune_toy(2)
    assert (outcome.race, outcome.stopped) == (None, False)
    (log,) = load_runs(outcome.journal)
    assert why in log.given_up[0].why
    for entry in (outcome.entry, *entries_of(outcome.tuned_log), *entries_of(outcome.journal)):
        assert not entry.raced
        assert verdict(entry).startswith("not raced against the default: the final race was given up, ")
        assert why in verdict(entry)
    console = Console(width=200, record=True)
    print_outcome(console, outcome)
    assert why in console.export_text()

    monkeypatch.undo()
    again = tune_toy(3)
    assert again.entry.raced
    assert again.entry.race_failed == ""


def test_a_stopped_run_says_so(tune_toy, monkeypatch):
    monkeypatch.setattr("autotune.tune._final_race", lambda *_, **__: None)
    assert verdict(tune_toy(2).entry) == "not raced against the default: the run was stopped before its final race"
