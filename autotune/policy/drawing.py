"""Draws schedules decision by decision: many at once, and out of dead ends one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.policy.decisions import Codes, Decisions, Mask
from autotune.policy.network import Layer, Step
from autotune.policy.table import Floats, Table
from search_spaces.schedule import Schedule


@dataclass(frozen=True)
class Bound:
    """The decisions of a space with the rows of their parameters.

    Attributes:
        decisions: Of the space.
        steps: Those of each sketch, the sketch itself first.
        size: Names that the table had; with more of them the rows may be others.
    """

    decisions: Decisions
    steps: Mapping[str, tuple[Step, ...]]
    size: int

    @staticmethod
    def of(decisions: Decisions, table: Table) -> Bound:
        """The decisions as `table` knows them."""
        sketches = decisions.sketches.items()
        steps = {name: tuple(Step.of(step, table) for step in sketch.steps) for name, sketch in sketches}
        return Bound(decisions, steps, len(table.index))


class Chooser:
    """Chooses by logits, in a share of the rows uniformly.

    Args:
        rng: The only source of randomness.
        uniform: The share.
    """

    def __init__(self, rng: np.random.Generator, uniform: float) -> None:
        self._rng = rng
        self._uniform = uniform

    def noisy(self, logits: Floats) -> Floats:
        """Logits with Gumbel's noise: their order is a draw without replacement."""
        if self._uniform > 0:
            logits = np.where(self._rng.random((len(logits), 1)) < self._uniform, 0.0, logits)
        return np.asarray(logits + self._rng.gumbel(size=logits.shape))

    def __call__(self, logits: Floats, mask: Mask) -> Codes:
        """A value for each row among those that `mask` leaves."""
        return np.asarray(np.argmax(np.where(mask, self.noisy(logits), -np.inf), axis=1))


class Drawing:
    """Draws from a policy of the moment.

    Args:
        bound: The space.
        task: What the task adds to the hidden layer, shape (width,).
        table: The parameters.
        choose: How values are chosen.
    """

    def __init__(self, bound: Bound, task: Floats, table: Table, choose: Chooser) -> None:
        self._bound, self._task, self._choose = bound, task, choose
        self._layers = {name: [Layer(step, table) for step in steps] for name, steps in bound.steps.items()}

    def sketches(self, count: int) -> Floats:
        """Noisy preferences between the sketches, shape (count, sketches)."""
        layer = next(iter(self._layers.values()))[0]
        return self._choose.noisy(layer.logits(layer.hidden(np.tile(self._task, (count, 1)))))

    def fill(self, sketch: str, picks: Codes, kept: Codes | None = None) -> list[Schedule | None]:
        """Decides the knobs of a sketch for many schedules at once.

        Args:
            sketch: Which.
            picks: Its place among the sketches, for each schedule.
            kept: Places of values that are taken where they are legal, -1 for none, shape (n, steps).

        Returns:
            The schedules, None where a dead end was met.
        """
        layers, decisions = self._layers[sketch], self._bound.decisions.sketches[sketch]
        codes = np.zeros((len(picks), len(layers)), np.int64)
        codes[:, 0] = picks
        alive = np.ones(len(picks), np.bool_)
        sums = self._task + layers[0].into[picks]
        each = np.arange(len(picks))
        for place, layer in enumerate(layers[1:], start=1):
            mask = decisions.mask(place, codes)
            alive &= mask.any(axis=1)
            chosen = self._choose(layer.logits(layer.hidden(sums)), mask)
            if kept is not None:
                wanted = kept[:, place]
                chosen = np.where((wanted >= 0) & mask[each, wanted], wanted, chosen)
            codes[:, place] = chosen
            sums += layer.into[chosen]
        found = decisions.schedules(codes)
        return [schedule if fine else None for schedule, fine in zip(found, alive.tolist(), strict=True)]

    def one(self) -> Schedule | None:
        """A schedule wherever there is one, depth first in an order drawn at each decision."""
        names = list(self._bound.steps)
        for pick in np.argsort(-self.sketches(1)[0]).tolist():
            found = self._searched(names[pick], pick)
            if found is not None:
                return found
        return None

    def _searched(self, sketch: str, pick: int) -> Schedule | None:
        """Backtracks, each time to the latest decision that has a part in the dead end (Prosser, 1993).

        To go back one decision at a time would try all values of those that have none.
        """
        layers, decisions = self._layers[sketch], self._bound.decisions.sketches[sketch]
        codes = np.zeros((1, len(layers)), np.int64)
        codes[0, 0] = pick
        sums = [self._task + layers[0].into[[pick]]]
        # For each decision the values left to try, best last, and the earlier decisions that ruled others out.
        left: list[list[int]] = [[]]
        culprits: list[set[int]] = [set()]
        while (place := len(left)) < len(layers):
            mask = decisions.mask(place, codes)[0]
            noisy = self._choose.noisy(layers[place].logits(layers[place].hidden(sums[-1])))[0]
            left.append([i for i in np.argsort(noisy).tolist() if mask[i]])
            culprits.append(set(decisions.before(place)) if not mask.all() else set())
            while not left[-1]:
                if not (blamed := culprits[-1]):
                    return None
                back = max(blamed)
                del left[back + 1 :], culprits[back + 1 :], sums[back:]
                culprits[back] |= blamed - {back}
            last = len(left) - 1
            codes[0, last] = left[last].pop()
            sums.append(sums[-1] + layers[last].into[codes[:, last]])
        return decisions.schedules(codes)[0]


def drawn_many(drawing: Drawing, names: Sequence[str], count: int, tries: int) -> list[Schedule]:
    """Legal schedules; what met a dead end is drawn again `tries` times, then searched for.

    Args:
        drawing: From which.
        names: Of the sketches.
        count: How many.
        tries: Before the search, which takes longer.
    """
    drawn: list[Schedule | None] = [None] * count
    for _ in range(tries):
        missing = np.array([i for i, s in enumerate(drawn) if s is None], np.int64)
        if not len(missing):
            break
        picks = np.argmax(drawing.sketches(len(missing)), axis=1)
        for place, name in enumerate(names):
            rows = missing[picks == place]
            for row, schedule in zip(rows.tolist(), drawing.fill(name, picks[picks == place]), strict=True):
                drawn[row] = schedule
    finished = (s if s is not None else drawing.one() for s in drawn)
    return [s for s in finished if s is not None]
