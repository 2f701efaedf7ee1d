"""A strategy asked in the background: what is told and when, and whole searches that go on meanwhile."""

import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from autotune import tune as tuning
from autotune.journal import load_runs, read_journal
from autotune.proposals import Proposal, Proposals
from autotune.records import TrialRecord
from autotune.strategies import random as random_strategy
from autotune.strategies.base import Result
from search_spaces.registry import load_file
from search_spaces.schedule import Schedule

RECORDED = load_file(Path(__file__).parents[1] / "support" / "recorded.py")


def schedule(number):
    return Schedule((("sketch", "s"), ("k", number)))


def test_an_ask_comes_after_what_was_told_and_runs_beside_the_caller():
    log, go = [], threading.Event()

    def ask(count):
        assert threading.current_thread() is not threading.main_thread()
        assert go.wait(60)
        log.append(count)
        return Proposal([schedule(count)], [None])

    proposals = Proposals(log.extend, ask)
    early, late = Result(schedule(1), 1.0), Result(schedule(2), 2.0)
    proposals.tell([early])
    proposals.ask(3)
    assert proposals.take() is None
    assert proposals.awaited
    proposals.tell([late])
    go.set()
    assert proposals.take(wait=True).schedules == [schedule(3)]
    assert not proposals.awaited
    assert log == [early, 3]
    proposals.close()
    assert log == [early, 3, late]


def test_what_the_strategy_raises_reaches_the_caller():
    def ask(count):
        raise ZeroDivisionError(count)

    proposals = Proposals(lambda told: None, ask)
    proposals.ask(1)
    with pytest.raises(ZeroDivisionError):
        proposals.take(wait=True)
    proposals.close()


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """The recorded device in a search that never waits for a wave."""
    plan = tuning._plan
    monkeypatch.setattr(tuning, "_plan", lambda *given: replace(plan(*given), waves=False, batch=4, window=12))


@pytest.mark.parametrize("strategy", ["hybrid", "random"])
def test_a_search_in_the_background_measures_what_it_asked_once(as_on_a_gpu, tmp_path, strategy):
    outcome = RECORDED.tune_recorded(tmp_path, 60, strategy)
    assert outcome.new_trials == len(outcome.log.trials) == 60
    longer = RECORDED.tune_recorded(tmp_path, 72, strategy)
    assert longer.new_trials == 12
    (log,) = load_runs(tmp_path)
    assert list(log.trials)[:60] == list(outcome.log.trials)
    choosers = Counter(record.chooser for record in read_journal(tmp_path) if isinstance(record, TrialRecord))
    if strategy == "hybrid":
        assert choosers.keys() >= {"explore", "improvement", "fast"}


class Brief(random_strategy.STRATEGY):
    """Has no more than ten."""

    def ask(self, count):
        return super().ask(min(count, 10 - len(self.seen)))


def test_it_ends_when_the_strategy_has_no_more(as_on_a_gpu, tmp_path):
    outcome = RECORDED.tune_recorded(tmp_path, 60, f"{__file__}:Brief")
    assert outcome.new_trials == 10
