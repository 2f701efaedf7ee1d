"""Strategies: what to try next. One file each; the file's name is the name on the command line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from autotune.search.memory import Memory
from search_spaces.space import Schedule, ScheduleSpace

Score = Callable[[Sequence[Schedule]], NDArray[np.float64]]
# Of schedules, at most so many, given those being measured, by one head of the model: places, most promising first.
Choose = Callable[[Sequence[Schedule], int, Sequence[Schedule], str], list[int]]
# Random draws in a row that were all seen before; then what is left of the space is enumerated.
_DRAWS = 64
# Random walks in a row that ended at something seen; then a walk from there is given up.
_MUTANTS = 8
_CHUNK = 4096


@dataclass(frozen=True)
class Result:
    """What came of one schedule.

    Attributes:
        schedule: As asked.
        seconds: Its time, `inf` where it failed to build, run or verify.
    """

    schedule: Schedule
    seconds: float


class TaskPrior(Protocol):
    """What was learnt of other tasks, bound to the task at hand; it follows the results as they come."""

    @property
    def sketches(self) -> frozenset[str]:
        """The sketches of the space of which any of the other tasks tells something."""

    def first(self, count: int) -> list[Schedule]:
        """Schedules to begin with, best first: together they cover what was fast on the tasks learnt from."""

    def score(self, schedules: Sequence[Schedule]) -> NDArray[np.float64]:
        """Believed order, shape (n,), lower is faster."""

    def sample(self, rng: np.random.Generator) -> Schedule | None:
        """A legal schedule drawn from the policy; None where it found none."""

    def propose(self, rng: np.random.Generator, count: int, seen: Collection[Schedule]) -> list[Schedule]:
        """The schedules to measure next by all it knows, best first, each chosen for what it adds to those before it.

        Args:
            rng: Draws the candidates of a large space.
            count: At most so many.
            seen: Never proposed; those of them not yet told count as under way.
        """

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in: tasks that rank them wrongly lose their say."""


@dataclass
class Aids:
    """What a strategy may lean on besides the results.

    Attributes:
        score: A cost model's belief of many schedules at once: lower is faster. While the model has not learnt
            enough it returns zeros, so that no schedule is preferred; None where there is no model. Called as often
            as needed; the model behind it is refitted between calls.
        context: Numbers that describe the task: shape, dtype, operations, bytes, limits of the device; see
            `cost_models.context`.
        prior: What was learnt of other tasks, None where nothing is known of this kind of task.
        choose: The model's choice of what to measure next; see `CostModel.choose`. None where there is no model.
        heads: Names of the model's opinions, for `choose`.
    """

    score: Score | None = None
    context: Mapping[str, float] = field(default_factory=dict)
    prior: TaskPrior | None = None
    choose: Choose | None = None
    heads: tuple[str, ...] = ()


class Strategy(ABC):
    """Proposes schedules and learns from results.

    Asks are asynchronous: schedules asked may not yet be told when the next ask comes, results come in any order,
    and what was told may never have been asked (a resumed run). A strategy sees no device, clock, file or model.

    Args:
        space: The space to search.
        rng: The only source of randomness.
        aids: What it may lean on besides the results.

    Attributes:
        model: Name of the cost model that should be fitted for it, "" where it uses none.
        uses_prior: Whether it should be given what was learnt of other tasks.
        memory: What was asked and told; may be replaced by that of another strategy, to search together.
    """

    model: ClassVar[str] = ""
    uses_prior: ClassVar[bool] = False

    def __init__(self, space: ScheduleSpace, rng: np.random.Generator, aids: Aids | None = None) -> None:
        self.space = space
        self.rng = rng
        self.aids = aids if aids is not None else Aids()
        self.memory = Memory()
        self._leftovers = self._enumerated()

    @property
    def seen(self) -> set[Schedule]:
        """Every legal schedule asked or told."""
        return self.memory.seen

    @property
    def told(self) -> dict[Schedule, float]:
        """Legal schedules with their latest seconds, `inf` where they failed."""
        return self.memory.told

    @abstractmethod
    def ask(self, count: int) -> list[Schedule]:
        """At most `count` new legal schedules, none of which was asked or told before; [] where there is no more."""

    def tell(self, results: Sequence[Result]) -> None:
        """Takes results in, also of schedules it never asked for."""
        for result in results:
            if self.space.why_not(result.schedule) is None:
                self.memory.tell(result.schedule, result.seconds)

    def chooser_of(self, schedule: Schedule) -> str | None:
        """The part of the strategy that asked for a schedule not yet told; None where it does not tell."""
        return None

    def save(self, folder: Path) -> None:  # noqa: B027 - most have nothing to keep
        """Writes what it has learnt into a folder, under a name of its own; by default nothing.

        Raises:
            CannotWrite: It cannot be written.
        """

    def best(self, count: int) -> list[Schedule]:
        """The fastest schedules told so far, at most `count`; none that failed."""
        return self.memory.best(count)

    def fresh(self, prefix: Schedule | None = None) -> Schedule | None:
        """A random legal schedule that was neither asked nor told, to be asked at once; None where none is left.

        Under a `prefix` None may also mean that few are left there.
        """
        for _ in range(_DRAWS):
            drawn = self.space.sample(self.rng, prefix)
            if drawn is None:
                return None
            if drawn not in self.seen:
                return drawn
        return next(self._leftovers, None) if prefix is None else None

    def fresh_many(self, count: int) -> list[Schedule]:
        """At most `count` new schedules, marked as seen; fewer only where no more are left."""
        asked: list[Schedule] = []
        while len(asked) < count:
            drawn = self.fresh()
            if drawn is None:
                break
            self.seen.add(drawn)
            asked.append(drawn)
        return asked

    def _enumerated(self) -> Iterator[Schedule]:
        """What is left when drawing finds nothing new: the space in its order, shuffled in chunks."""
        everything = iter(self.space)
        while chunk := list(islice(everything, _CHUNK)):
            for index in self.rng.permutation(len(chunk)):
                if chunk[index] not in self.seen:
                    yield chunk[index]


class SteppingStrategy(Strategy):
    """Decides on one schedule after the other. It never waits: what it has no step for is asked at random."""

    def ask(self, count: int) -> list[Schedule]:
        """Its next steps, random schedules where it has none."""
        asked: list[Schedule] = []
        while len(asked) < count:
            chosen = self.step()
            if chosen is None or chosen in self.seen:
                chosen = self.fresh()
            if chosen is None:
                break
            self.seen.add(chosen)
            asked.append(chosen)
        return asked

    @abstractmethod
    def step(self) -> Schedule | None:
        """A legal schedule to try next; None, or one that was seen, where it has nothing better than a random one."""

    def unseen_mutant(self, schedule: Schedule, changes: int) -> Schedule | None:
        """A schedule never seen, `changes` random changes of one knob away or a little further; None if none is found.

        Every try that meets what was seen goes one change further, so that an exhausted neighbourhood is left.
        """
        for extra in range(_MUTANTS):
            mutant = schedule
            for _ in range(changes + extra // 2):
                mutant = self.space.mutate(mutant, self.rng) or mutant
            if mutant not in self.seen:
                return mutant
        return None
