"""The network of the policy: one hidden layer that sums what is decided, and a masked softmax for each decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.policy.decisions import Decision, Group, Mask
from autotune.policy.table import Floats, Rows, Table


@dataclass(frozen=True)
class Step:
    """A decision with the rows of its parameters.

    Attributes:
        decision: Which.
        rows: Of the numbers that describe its values, shape (names,).
        own: Of the decision itself, in an array of one.
    """

    decision: Decision
    rows: Rows
    own: Rows

    @staticmethod
    def of(decision: Decision, table: Table) -> Step:
        """The decision as `table` knows it."""
        return Step(decision, table.rows(decision.names), table.rows([f"{decision.name}?"]))


class Layer:
    """What a decision adds to the hidden layer and takes out of it, with the parameters of the moment."""

    def __init__(self, step: Step, table: Table) -> None:
        width = table.width
        folded = step.decision.numbers @ table.values[step.rows]
        self.into, self.out, self.bias = folded[:, :width], folded[:, width:-1], folded[:, -1]
        self.own = table.values[step.own[0], :width]

    def hidden(self, sums: Floats) -> Floats:
        """The hidden layer of this decision after earlier ones: shape (n, width)."""
        return np.asarray(np.tanh(sums + self.own))

    def logits(self, hidden: Floats) -> Floats:
        """Preferences of its values, shape (n, values)."""
        return np.asarray(hidden @ self.out.T + self.bias)


def log_softmax(logits: Floats, mask: Mask) -> Floats:
    """Logarithms of probabilities over what `mask` leaves, -inf elsewhere; rows of no choice at all are -inf."""
    masked = np.where(mask, logits, -np.inf)
    top = masked.max(axis=1, keepdims=True, initial=-np.inf)
    shifted = masked - np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


class Pass:
    """One pass over complete schedules of a sketch.

    Args:
        steps: Of the sketch, in order.
        group: The schedules.
        task: What the task adds to the hidden layer, shape (width,).
        table: The parameters.

    Attributes:
        log_prob: Shape (n,).
        entropy: Sum over the decisions of the entropy of each, given those before; shape (n,).
        freedom: The sum of the entropies that uniform choices would have, shape (n,).
    """

    def __init__(self, steps: Sequence[Step], group: Group, task: Floats, table: Table) -> None:
        self._steps, self._group, self._table = steps, group, table
        self._layers = [Layer(step, table) for step in steps]
        count = len(group.codes)
        self._each = np.arange(count)
        self.log_prob = np.zeros(count)
        self.entropy = np.zeros(count)
        self.freedom = np.zeros(count)
        self._hidden: list[Floats] = []
        self._logs: list[Floats] = []
        self._entropies: list[Floats] = []
        sums = np.tile(task, (count, 1))
        for place, layer in enumerate(self._layers):
            hidden = layer.hidden(sums)
            mask, codes = group.masks[place], group.codes[:, place]
            logs = log_softmax(layer.logits(hidden), mask)
            entropy = -(np.exp(logs) * np.where(mask, logs, 0.0)).sum(axis=1)
            self.log_prob += logs[self._each, codes]
            self.entropy += entropy
            self.freedom += np.log(mask.sum(axis=1))
            self._hidden.append(hidden)
            self._logs.append(logs)
            self._entropies.append(entropy)
            sums = sums + layer.into[codes]

    def gradient(self, of_log_prob: Floats, of_entropy: Floats, into: Floats) -> Floats:
        """Adds the gradient of a loss to `into`, of the shape of the table's values.

        Args:
            of_log_prob: Derivative of the loss by each log-probability, shape (n,).
            of_entropy: The same by each entropy.
            into: Where it is added.

        Returns:
            Derivative by what the task adds to the hidden layer, shape (width,).
        """
        width = self._table.width
        later = np.zeros((len(self._each), width))
        for place in reversed(range(len(self._steps))):
            step, layer, hidden = self._steps[place], self._layers[place], self._hidden[place]
            codes, mask = self._group.codes[:, place], self._group.masks[place]
            logs = np.where(mask, self._logs[place], 0.0)
            shares = np.where(mask, np.exp(logs), 0.0)
            chosen = np.zeros_like(shares)
            chosen[self._each, codes] = 1.0
            slope = of_log_prob[:, None] * (chosen - shares)
            slope -= of_entropy[:, None] * shares * (logs + self._entropies[place][:, None])
            folded = np.concatenate([chosen.T @ later, slope.T @ hidden, slope.sum(axis=0)[:, None]], axis=1)
            into[step.rows] += step.decision.numbers.T @ folded
            inner = (slope @ layer.out) * (1.0 - hidden**2)
            into[step.own[0], :width] += inner.sum(axis=0)
            later += inner
        return np.asarray(later.sum(axis=0))
