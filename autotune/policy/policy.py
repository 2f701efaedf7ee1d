"""A policy over the decisions of any space: which value next, given those chosen and the task.

It is autoregressive: the sketch first, then the sketch's knobs, each from what `ScheduleSpace.options` offers. Its
parameters belong to names (a sketch, a knob, a value, a number of the task), so one policy serves many tasks, shapes
and devices, and gives what it was never taught of the same chance as everything else there.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.policy import store
from autotune.policy.decisions import Decisions, Group
from autotune.policy.drawing import Bound, Chooser, Drawing, drawn_many
from autotune.policy.learning import (
    Context,
    Demonstration,
    Learning,
    Loss,
    clipped_loss,
    likelihood_loss,
    standardised,
)
from autotune.policy.network import Pass
from autotune.policy.table import Floats, Rows, Table
from search_spaces.schedule import Schedule
from search_spaces.space import ScheduleSpace

# Spaces whose decisions are kept at hand.
_SPACES = 64
# Standardised numbers of a task are cut here: a device unlike all others is taken for an extreme one.
_EXTREME = 3.0
# Draws that may meet a dead end before a schedule is searched for.
_TRIES = 4


@dataclass(frozen=True)
class _Task:
    """The numbers of a task that the policy knows, standardised, and their rows."""

    numbers: Floats
    rows: Rows


class Policy:
    """Draws schedules, says how likely it is to draw one, and learns.

    What meets a dead end is drawn again and in the end searched for, so a schedule is found wherever there is one; the
    probabilities of the schedules of such a space add up to less than one.

    Args:
        seed: Of its first parameters.
        width: Of the hidden layer.

    Attributes:
        table: Its parameters.
    """

    def __init__(self, seed: int = 0, width: int = 32) -> None:
        self.table = Table(width)
        self._scales: dict[str, tuple[float, float]] = {}
        self._rng = np.random.default_rng(seed)
        self._bounds: OrderedDict[int, Bound] = OrderedDict()

    def sample(
        self, space: ScheduleSpace, context: Context, rng: np.random.Generator, count: int, uniform: float = 0.0
    ) -> list[Schedule]:
        """Draws legal schedules, with repetition; fewer only where the space has none.

        Args:
            space: To draw from.
            context: The task as numbers.
            rng: The only source of randomness.
            count: How many.
            uniform: Share of the decisions that are taken without regard to what was learnt.
        """
        bound = self._bind(space)
        if not bound.steps:
            return []
        return drawn_many(self._drawing(bound, context, Chooser(rng, uniform)), list(bound.steps), count, _TRIES)

    def adjust(
        self,
        space: ScheduleSpace,
        context: Context,
        schedules: Sequence[Schedule],
        rng: np.random.Generator,
        keep: float,
        uniform: float = 0.0,
    ) -> list[Schedule]:
        """Draws the decisions of complete legal schedules again, each knob's with a chance.

        Args:
            space: Of the schedules.
            context: The task as numbers.
            schedules: To adjust; each stays one of its sketch.
            rng: The only source of randomness.
            keep: Chance that a decision stays, where the decisions before it allow it.
            uniform: As in `sample`.

        Returns:
            One for each that met no dead end, in their order; some may be unchanged.
        """
        bound = self._bind(space)
        drawing = self._drawing(bound, context, Chooser(rng, uniform))
        drawn: list[Schedule | None] = [None] * len(schedules)
        for group in bound.decisions.groups(schedules):
            kept = np.where(rng.random(group.codes.shape) < keep, group.codes, -1)
            found = drawing.fill(group.sketch, group.codes[:, 0], kept)
            for row, schedule in zip(group.rows.tolist(), found, strict=True):
                drawn[row] = schedule
        return [s for s in drawn if s is not None]

    def log_prob(self, space: ScheduleSpace, context: Context, schedules: Sequence[Schedule]) -> Floats:
        """Logarithms of the probabilities of drawing complete legal schedules, shape (n,)."""
        bound, task = self._bind(space), self._sum(self._task(context))
        log_prob = np.empty(len(schedules))
        for group in bound.decisions.groups(schedules):
            log_prob[group.rows] = Pass(bound.steps[group.sketch], group, task, self.table).log_prob
        return log_prob

    def update(
        self,
        space: ScheduleSpace,
        context: Context,
        schedules: Sequence[Schedule],
        rewards: Floats,
        learning: Learning | None = None,
    ) -> None:
        """Proximal policy optimisation on one batch of results.

        The horizon is one schedule, so the mean reward of the batch is the baseline and no critic is needed.

        Args:
            space: Of the schedules.
            context: The task as numbers.
            schedules: Legal and complete.
            rewards: Higher is better, shape (n,); see `autotune.policy.reward`.
            learning: How, by default as `Learning` says.
        """
        if not schedules:
            return
        learning = learning or Learning()
        self._meet(space)
        before = self.log_prob(space, context, schedules)
        loss = clipped_loss(before, standardised(rewards), learning.clip)
        groups = self._bind(space).decisions.groups(schedules)
        for _ in range(learning.epochs):
            self._descend(space, context, groups, loss, learning)

    def clone(
        self, demonstrations: Sequence[Demonstration], rng: np.random.Generator, learning: Learning | None = None
    ) -> float:
        """Imitation by maximum likelihood, a step for every demonstration in each epoch, in random order.

        The numbers of tasks that are new to the policy are standardised over these demonstrations from now on.

        Args:
            demonstrations: What to imitate.
            rng: Of the order.
            learning: How, by default as `Learning` says.

        Returns:
            The mean loss of the last epoch.
        """
        learning = learning or Learning()
        self._standardise([d.context for d in demonstrations])
        for demonstration in demonstrations:
            self._meet(demonstration.space)
        work = [
            (d, self._bind(d.space).decisions.groups(d.schedules), likelihood_loss(np.asarray(d.weights, np.float64)))
            for d in demonstrations
        ]
        total = 0.0
        for _ in range(learning.epochs):
            total = 0.0
            for index in rng.permutation(len(work)):
                demonstration, groups, loss = work[index]
                total += self._descend(demonstration.space, demonstration.context, groups, loss, learning)
        return total / max(1, len(work))

    def gradient(
        self, space: ScheduleSpace, context: Context, groups: Sequence[Group], loss: Loss, learning: Learning
    ) -> tuple[float, Floats, Rows]:
        """The loss less the weighted mean entropy, its gradient by the table's values, and the rows that it touches."""
        bound, task = self._bind(space), self._task(context)
        total = self._sum(task)
        passes = [Pass(bound.steps[g.sketch], g, total, self.table) for g in groups]
        count = sum(len(g.rows) for g in groups)
        log_prob, entropy, freedom = np.empty(count), np.empty(count), np.empty(count)
        for group, made in zip(groups, passes, strict=True):
            log_prob[group.rows], entropy[group.rows] = made.log_prob, made.entropy
            freedom[group.rows] = made.freedom
        value, slope = loss(log_prob)
        weight = learning.entropy_weight(float(entropy.sum() / max(freedom.sum(), 1e-12)))
        into = np.zeros_like(self.table.values)
        of_task = np.zeros(self.table.width)
        touched = [task.rows]
        for group, made in zip(groups, passes, strict=True):
            of_task += made.gradient(slope[group.rows], np.full(len(group.rows), -weight / count), into)
            touched += [np.concatenate([step.rows, step.own]) for step in bound.steps[group.sketch]]
        into[task.rows, : self.table.width] += np.outer(task.numbers, of_task)
        return value - weight * float(entropy.mean()), into, np.concatenate(touched)

    def save(self, path: Path) -> None:
        """Writes it to a file that `load` reads; how far Adam's averages had come is not kept.

        Raises:
            CannotWrite: The file cannot be written.
        """
        names = list(self.table.index)[1:]
        store.write(path, store.Stored(names, self.table.values[1:], self._scales))

    @staticmethod
    def load(path: Path) -> Policy:
        """Reads what `save` wrote; it draws with the same probabilities.

        Raises:
            BadLog: It is no policy, is damaged or of another version.
        """
        stored = store.read(path)
        policy = Policy()
        policy.table = Table.of(stored.names, stored.values)
        policy._scales = dict(stored.scales)
        return policy

    def _descend(
        self, space: ScheduleSpace, context: Context, groups: Sequence[Group], loss: Loss, learning: Learning
    ) -> float:
        value, gradient, touched = self.gradient(space, context, groups, loss, learning)
        self.table.descend(gradient, touched, learning.rate)
        return value

    def _bind(self, space: ScheduleSpace) -> Bound:
        """Its decisions with the rows of now; the space is kept with them, so that no other has its id."""
        bound = self._bounds.get(id(space))
        if bound is None or bound.size != len(self.table.index):
            decisions = bound.decisions if bound is not None else Decisions(space)
            bound = self._bounds[id(space)] = Bound.of(decisions, self.table)
        self._bounds.move_to_end(id(space))
        if len(self._bounds) > _SPACES:
            self._bounds.popitem(last=False)
        return bound

    def _drawing(self, bound: Bound, context: Context, choose: Chooser) -> Drawing:
        return Drawing(bound, self._sum(self._task(context)), self.table, choose)

    def _meet(self, space: ScheduleSpace) -> None:
        """Gives the names of a space rows of their own.

        Random ones into the hidden layer where the sketch is new. What is new in a known sketch adds nothing to it, so
        that the sketch's other decisions stay as they were taught.
        """
        for name, sketch in self._bind(space).decisions.sketches.items():
            rng = self._rng if f"{sketch.steps[0].name}={name}" not in self.table.index else None
            self.table.add([f"{sketch.steps[0].name}={name}"], rng)
            for step in sketch.steps[1:]:
                self.table.add([f"{step.name}?", *step.names], rng)
            self.table.add([f"{sketch.steps[0].name}?"], rng)

    def _standardise(self, contexts: Sequence[Context]) -> None:
        """Learns mean and spread of the numbers of tasks that it does not know yet."""
        for name in sorted({name for context in contexts for name in context} - set(self._scales)):
            numbers = np.array([context[name] for context in contexts if name in context])
            spread = float(numbers.std())
            self._scales[name] = (float(numbers.mean()), spread if spread > 1e-9 else 1.0)
            self.table.add([f"@{name}"], None)

    def _task(self, context: Context) -> _Task:
        """The numbers that it knows; one that is missing counts as the mean."""
        known = [name for name in context if name in self._scales]
        numbers = [(context[name] - self._scales[name][0]) / self._scales[name][1] for name in known]
        return _Task(np.clip(numbers, -_EXTREME, _EXTREME), self.table.rows(f"@{name}" for name in known))

    def _sum(self, task: _Task) -> Floats:
        """What the task adds to the hidden layer."""
        return np.asarray(task.numbers @ self.table.values[task.rows, : self.table.width])
