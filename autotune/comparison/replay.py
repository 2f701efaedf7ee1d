"""Replays a search over a recorded space: the strategy and its model as in a live run, the device a recording."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from autotune.clock import monotonic
from autotune.comparison.trace import Floats, Trace
from autotune.recordings.recording import Recording
from autotune.strategies.base import Aids, Result, Strategy, TaskPrior
from autotune.tune import STRATEGIES
from autotune.tuner import Learner
from cost_models.features import Features
from cost_models.model import MODELS, CostModel
from search_spaces import registry

# What was learnt of other tasks, for the task of a recording; None where nothing is known of its kind.
PriorFor = Callable[[Recording], TaskPrior | None]
# Tell the streams of the noise from the strategy's.
_NOISE, _RACE = 1, 2
# Of each finalist, as in the shortest of races.
RACE_REPEATS = 30


def seed_on(recording: Recording, seed: int) -> int:
    """The seed of a search on one space: spaces that list the same schedules are not to be drawn from alike."""
    number = int.from_bytes(hashlib.sha256(recording.name.encode()).digest()[:8], "big")
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])


def noisy_seconds(recording: Recording, seed: int) -> Floats:
    """What measuring each schedule gives in the runs of one seed, shape (schedules,), `inf` where it fails.

    It depends on nothing but the recording and the seed, so that strategies are compared on the same device in the
    same mood, and a schedule measured by two of them took the same time.
    """
    rng = np.random.default_rng([seed_on(recording, seed), _NOISE])
    return np.array([recording.measure(s, rng) for s in recording.space.schedules])


def race_seconds(recording: Recording, seed: int, place: int) -> float:
    """What the final race of a run times a schedule at, by its place; as `noisy_seconds`, over more repeats."""
    rng = np.random.default_rng([seed_on(recording, seed), _RACE, place])
    return recording.measure(recording.space.schedules[place], rng, RACE_REPEATS)


def replay(
    recording: Recording,
    strategy: str,
    seed: int,
    *,
    trials: int,
    batch: int,
    observed: Floats | None = None,
    prior_for: PriorFor | None = None,
) -> Trace:
    """One search.

    Args:
        recording: The space and its times.
        strategy: Name of the strategy, a dotted module or `file.py:Name`.
        seed: Of strategy, model and noise.
        trials: Measurements; failures count.
        batch: Schedules asked for at a time; all of them are told before the next ask.
        observed: `noisy_seconds` of recording and seed, where it is at hand.
        prior_for: Gives the prior of strategies that use one, None for a start from scratch.

    Returns:
        The trace; where the strategy raised, what it had done and the error.

    Raises:
        AutotuneError: There is no such strategy or model.
    """
    make: type[Strategy] = registry.find(STRATEGIES, strategy, "strategy")
    own_seed = seed_on(recording, seed)
    learner = _learner(recording, make.model, own_seed) if make.model else None
    prior = prior_for(recording) if make.uses_prior and prior_for is not None else None
    context = recording.context
    aids = learner.aids(context, prior) if learner is not None else Aids(None, context, prior)
    search = _Search(recording, noisy_seconds(recording, seed) if observed is None else observed)
    error = ""
    with threadpool_limits(1):
        try:
            search.run(make(recording.space, np.random.default_rng(own_seed), aids), learner, trials, batch)
        except Exception as raised:
            error = " ".join(f"{type(raised).__name__}: {raised}".split())[:500]
    return Trace(
        strategy=strategy,
        space=recording.name,
        seed=seed,
        trials=trials,
        places=tuple(search.places),
        observed=tuple(float(t) if np.isfinite(t) else None for t in search.observed[search.places]),
        overhead=tuple(search.overhead),
        error=error,
    )


class _Search:
    """The state of one replayed search."""

    def __init__(self, recording: Recording, observed: Floats) -> None:
        self._recording = recording
        self.observed = observed
        self.places: list[int] = []
        self.overhead: list[float] = []

    def run(self, strategy: Strategy, learner: Learner | None, trials: int, batch: int) -> None:
        """Asks and tells until the trials are spent or the space is exhausted."""
        asked_before: set[int] = set()
        while (left := trials - len(self.places)) > 0:
            began = monotonic()
            schedules = strategy.ask(min(batch, left))
            took = monotonic() - began
            if not schedules:
                return
            places = [self._recording.index[s] for s in schedules]
            if len(places) > min(batch, left) or asked_before & set(places) or len(set(places)) < len(places):
                raise ValueError("it asked for more than it should, or for a schedule a second time")
            asked_before.update(places)
            results = [Result(s, float(self.observed[p])) for s, p in zip(schedules, places, strict=True)]
            began = monotonic()
            strategy.tell(results)
            if learner is not None:
                learner.tell(results)
            took += monotonic() - began
            self.places += places
            self.overhead += [took / len(places)] * len(places)


def _learner(recording: Recording, model: str, seed: int) -> Learner:
    made = registry.find(MODELS, model, "model")(Features(recording.space), seed)
    assert isinstance(made, CostModel)
    return Learner(made)
