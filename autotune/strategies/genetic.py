"""A generational genetic algorithm: ranked parents, single-point and uniform crossover, mutation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotune.strategies.base import Aids, Result, SteppingStrategy
from search_spaces.space import Schedule, ScheduleSpace, Value

POPULATION = 20
# The fastest of the parents that live on, so that a poor generation does not lose them.
ELITE = 4
SINGLE_POINT = 0.7
# Chance of each knob of a child to change.
MUTATION = 0.1
TRIES = 8


class GeneticAlgorithm(SteppingStrategy):
    """Every generation is bred from the one before, the faster the likelier.

    A generation is bred as soon as the one before was asked and half of it told; results that come later belong to
    the one that is then alive. Twenty alive and single-point crossover did best in the published tuning of this
    algorithm for kernels (Willemsen et al., "Tuning the Tuner", 2025).
    """

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        super().__init__(space, rng, aids)
        self._parents: list[Schedule] = []
        self._arrived: dict[Schedule, None] = {}
        self._unborn = POPULATION

    def step(self) -> Schedule | None:
        """A child of the generation being bred; of the parents before while too few of it were told."""
        if self._unborn <= 0 and len(self._arrived) >= POPULATION // 2:
            self._next_generation()
        self._unborn -= 1
        return self._child() if self._parents else None

    def tell(self, results: Sequence[Result]) -> None:
        """Those that did not fail join the generation alive."""
        super().tell(results)
        told = (r.schedule for r in results if r.seconds < math.inf and r.schedule in self.told)
        self._arrived |= dict.fromkeys(told)

    def _next_generation(self) -> None:
        alive = {*self._arrived, *self._parents[:ELITE]}
        self._parents = sorted(alive, key=lambda s: (self.told[s], s.key))[:POPULATION]
        self._arrived = {}
        self._unborn = POPULATION

    def _child(self) -> Schedule | None:
        """A new schedule bred from the parents, None where none was found soon."""
        for _ in range(TRIES):
            one = self._chosen(self._parents)
            mates = [s for s in self._parents if s.sketch == one.sketch and s != one]
            child = self._crossed(one, self._chosen(mates)) if mates else one
            child = self._mutated(child)
            if child not in self.seen:
                return child
        return None

    def _chosen(self, ranked: Sequence[Schedule]) -> Schedule:
        """One drawn with a weight that falls linearly with its rank."""
        return ranked[int(len(ranked) * (1.0 - math.sqrt(self.rng.random())))]

    def _crossed(self, one: Schedule, other: Schedule) -> Schedule:
        if len(one) < 3 or self.rng.random() >= SINGLE_POINT:
            return self.space.cross(one, other, self.rng) or one
        head = Schedule(one.items[: int(self.rng.integers(2, len(one)))])
        return self.space.complete(head, lambda prefix, options: self._tail(other, prefix, options)) or one

    def _tail(self, other: Schedule, prefix: Schedule, options: Sequence[Value]) -> list[Value]:
        """The other parent's value first; where a limit forbids it any that is legal."""
        wished = other.items[len(prefix)][1]
        order = [options[i] for i in self.rng.permutation(len(options))]
        return sorted(order, key=lambda value: value != wished)

    def _mutated(self, child: Schedule) -> Schedule:
        knobs = self.space.sketch(child.sketch).knobs
        for knob in (k for k in knobs if self.rng.random() < MUTATION):
            value = knob.values[int(self.rng.integers(len(knob.values)))]
            child = self.space.changed(child, knob.name, value) or child
        return child


STRATEGY = GeneticAlgorithm
