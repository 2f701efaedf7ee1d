"""The tree-structured Parzen estimator of optuna, asked and told; needs the extra `optuna`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from autotune.strategies.base import Aids, Result, SteppingStrategy
from search_spaces import registry
from search_spaces.space import Knob, Schedule, ScheduleSpace, SketchSpace, Value

# Before so many are told optuna would draw at random too, but without heed to limits and repetitions.
WARM_UP = 16
# Sketches are drawn by how many of so many fastest are theirs.
FASTEST = 16


class TreeParzenSearch(SteppingStrategy):
    """Multivariate TPE over the knobs of a sketch, one study for each sketch.

    Integers are ordered by size, all else is a choice. TPE knows no limits: a suggestion that breaks one gives way to
    the nearest legal schedule in the order of decisions, one that was seen to a neighbour, and the study is told what
    was asked instead. What is in flight counts as bad, so that the schedules of one ask do not crowd together.

    Raises:
        MissingDependency: optuna is not installed.
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._studies = {s.sketch: _Study(s, int(rng.integers(2**31))) for s in space.sketches}

    def step(self) -> Schedule | None:
        """What a study suggests, made legal and new."""
        if len(self.told) < WARM_UP:
            return None
        study = self._studies[self._sketch()]
        suggested = study.suggest()
        start = Schedule(suggested.items[:1])
        found = self.space.complete(start, partial(study.nearest, suggested))
        if found is not None and found in self.seen:
            found = self.unseen_mutant(found, 1)
        if found is not None:
            study.expect(found)
        return found

    def tell(self, results: Sequence[Result]) -> None:
        """Tells the studies, each what its sketch gave."""
        super().tell(results)
        for result in results:
            if result.schedule in self.told:
                self._studies[result.schedule.sketch].tell(result)

    def _sketch(self) -> str:
        fast = Counter(s.sketch for s in self.best(FASTEST))
        weights = np.array([1.0 + fast[name] for name in self._studies])
        return list(self._studies)[int(self.rng.choice(len(weights), p=weights / weights.sum()))]


class _Study:
    """An optuna study of the knobs of one sketch, whose parameters are places in the lists of values."""

    def __init__(self, sketch: SketchSpace, seed: int) -> None:
        self._optuna: Any = registry.optional("optuna", "optuna")
        self._optuna.logging.set_verbosity(self._optuna.logging.ERROR)
        self._sketch = sketch
        self._values = {knob.name: _ordered(knob) for knob in sketch.knobs}
        self._places = {name: {v: i for i, v in enumerate(values)} for name, values in self._values.items()}
        self._parameters = {knob.name: self._parameter(knob) for knob in sketch.knobs}
        sampler = self._optuna.samplers.TPESampler(n_startup_trials=1, multivariate=True, constant_liar=True, seed=seed)
        self._study = self._optuna.create_study(sampler=sampler)
        self._trial: Any = None
        self._expected: dict[Schedule, int] = {}

    def suggest(self) -> Schedule:
        """Values of the knobs, legal or not."""
        self._trial = self._study.ask(self._parameters)
        return self._sketch.at({name: self._values[name][place] for name, place in self._trial.params.items()})

    def nearest(self, suggested: Schedule, prefix: Schedule, options: Sequence[Value]) -> list[Value]:
        """The options of the next decision by their distance from what was suggested."""
        name, wished = suggested.items[len(prefix)]
        places = self._places[name]
        return sorted(options, key=lambda value: abs(places[value] - places[wished]))

    def expect(self, asked: Schedule) -> None:
        """Has what is asked stand in the study as running, in place of the last suggestion."""
        params = self._params(asked)
        if params != self._trial.params:
            self._study.tell(self._trial, state=self._optuna.trial.TrialState.FAIL)
            self._study.enqueue_trial(params)
            self._trial = self._study.ask(self._parameters)
        self._expected[asked] = self._trial.number

    def tell(self, result: Result) -> None:
        """Ends the schedule's trial, or adds one where it was not suggested."""
        number = self._expected.pop(result.schedule, None)
        if number is not None:
            self._study.tell(number, result.seconds)
        else:
            params = self._params(result.schedule)
            create = self._optuna.trial.create_trial
            self._study.add_trial(create(params=params, distributions=self._parameters, value=result.seconds))

    def _params(self, schedule: Schedule) -> dict[str, int]:
        return {name: self._places[name][value] for name, value in schedule.items[1:]}

    def _parameter(self, knob: Knob) -> Any:
        count = len(knob.values)
        if all(isinstance(v, int) and not isinstance(v, bool) for v in knob.values):
            return self._optuna.distributions.IntDistribution(0, count - 1)
        return self._optuna.distributions.CategoricalDistribution(tuple(range(count)))


def _ordered(knob: Knob) -> tuple[Value, ...]:
    """Integers by size, others as they are."""
    return tuple(sorted(knob.values)) if all(isinstance(v, int) for v in knob.values) else knob.values


STRATEGY = TreeParzenSearch
