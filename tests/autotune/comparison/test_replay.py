from dataclasses import replace as changed

import numpy as np
import pytest

from autotune.comparison.replay import noisy_seconds, replay
from search_spaces.errors import UnknownName

CRASHING = """
from autotune.strategies.random import RandomSearch

class Crashing(RandomSearch):
    def tell(self, results):
        super().tell(results)
        if len(self.told) > 16:
            raise ValueError("lost  the\\nthread")

class Repeating(RandomSearch):
    def ask(self, count):
        return [self.space.schedules[0]]

class Greedy(RandomSearch):
    def ask(self, count):
        return super().ask(count + 1)

class Curious(RandomSearch):
    uses_prior = True
    def ask(self, count):
        assert self.aids.prior == "what is known of bowl__board"
        return super().ask(count)
"""


@pytest.fixture
def strategies(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CRASHING)
    return path


@pytest.mark.parametrize("strategy", ["random", "evolutionary", "xgb", "exhaustive"])
def test_a_strategy_searches_as_it_would_live(recording, strategy):
    trace = replay(recording, strategy, 3, trials=50, batch=8)
    assert not trace.error
    assert len(trace.places) == len(set(trace.places)) == len(trace.observed) == len(trace.overhead) == 50
    assert min(trace.overhead) >= 0.0
    again = replay(recording, strategy, 3, trials=50, batch=8)
    assert (again.places, again.observed) == (trace.places, trace.observed)


def test_a_strategy_with_a_model_learns(recording):
    held = {
        name: np.mean([replay(recording, name, s, trials=60, batch=8).values(recording)[-1] for s in range(6)])
        for name in ("xgb", "random")
    }
    assert held["xgb"] < held["random"]


def test_failures_cost_a_measurement(recording):
    trace = replay(recording, "random", 0, trials=64, batch=8)
    failed = np.isinf(recording.seconds[list(trace.places)])
    assert failed.any()
    assert [t is None for t in trace.observed] == failed.tolist()


def test_the_clock_is_what_the_recording_cost_and_the_tuner_took(recording):
    trace = replay(recording, "random", 0, trials=10, batch=4)
    spent = np.cumsum(recording.cost[list(trace.places)]) + np.cumsum(trace.overhead)
    assert trace.clock(recording) == pytest.approx(spent)


def test_noise_depends_on_space_and_seed_alone(recording):
    noise = noisy_seconds(recording, 0)
    for strategy in ("random", "evolutionary"):
        trace = replay(recording, strategy, 0, trials=40, batch=8)
        told = [np.inf if t is None else t for t in trace.observed]
        assert told == noise[list(trace.places)].tolist()
    ok = np.isfinite(recording.seconds)
    assert (np.isinf(noise) == ~ok).all()
    assert (noise[ok] != noisy_seconds(recording, 1)[ok]).all()
    assert (noise[ok] != noisy_seconds(changed(recording, name="bowl__other"), 0)[ok]).all()


def test_spaces_with_the_same_schedules_are_drawn_from_otherwise(recording):
    other = changed(recording, name="bowl__other")
    draws = [replay(r, "random", 0, trials=20, batch=8).places for r in (recording, other)]
    assert draws[0] != draws[1]


def test_it_ends_with_the_space(recording):
    trace = replay(recording, "random", 0, trials=500, batch=50)
    assert sorted(trace.places) == list(range(len(recording.seconds)))
    assert len(trace.values(recording)) == 500


def test_a_crash_is_told_with_what_was_done_before(recording, strategies):
    trace = replay(recording, f"{strategies}:Crashing", 0, trials=40, batch=8)
    assert trace.error == "ValueError: lost the thread"
    assert len(trace.places) == 16


@pytest.mark.parametrize("name", ["Repeating", "Greedy"])
def test_who_asks_too_much_or_twice_is_not_scored(recording, strategies, name):
    assert "asked for more than it should" in replay(recording, f"{strategies}:{name}", 0, trials=40, batch=8).error


def test_a_prior_is_given_to_who_uses_one(recording, strategies):
    def prior_for(given):
        return f"what is known of {given.name}"

    assert not replay(recording, f"{strategies}:Curious", 0, trials=8, batch=8, prior_for=prior_for).error
    assert "AssertionError" in replay(recording, f"{strategies}:Curious", 0, trials=8, batch=8).error
    assert not replay(recording, "random", 0, trials=8, batch=8, prior_for=prior_for).error


def test_an_unknown_strategy_is_the_users_mistake(recording):
    with pytest.raises(UnknownName, match="did you mean 'random'"):
        replay(recording, "randon", 0, trials=8, batch=8)
