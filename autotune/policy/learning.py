"""What the policy learns from, how, and its two losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.policy.table import Floats
from search_spaces.schedule import Schedule
from search_spaces.space import ScheduleSpace

Context = Mapping[str, float]
# From log-probabilities, shape (n,), to the loss and its derivative by each of them.
Loss = Callable[[Floats], tuple[float, Floats]]


@dataclass(frozen=True)
class Demonstration:
    """Schedules of one task to be imitated.

    Attributes:
        context: The task as numbers.
        space: The task's space.
        schedules: Legal schedules of it.
        weights: How much each counts, shape (n,), none negative and not all zero.
    """

    context: Context
    space: ScheduleSpace
    schedules: Sequence[Schedule]
    weights: Floats

    def __post_init__(self) -> None:
        if (
            len(self.weights) != len(self.schedules)
            or np.min(self.weights, initial=0.0) < 0
            or not np.any(self.weights)
        ):
            raise ValueError(f"{len(self.schedules)} schedules need as many weights, some positive and none negative")


@dataclass(frozen=True)
class Learning:
    """How a policy learns.

    Attributes:
        rate: Of Adam.
        epochs: Passes over what is given.
        clip: How much more or less likely an update may make a schedule before the schedule stops counting.
        entropy: Weight of the mean entropy in nats, which is always rewarded.
        floor: Share of the greatest possible entropy under which `rescue` is added to the weight, in proportion to
            what is missing; 0 for no floor.
        rescue: The weight added where no entropy is left.
    """

    rate: float = 0.02
    epochs: int = 5
    clip: float = 0.2
    entropy: float = 0.01
    floor: float = 0.0
    rescue: float = 0.2

    def entropy_weight(self, relative: float) -> float:
        """The weight of the entropy where it is this share of the greatest possible."""
        missing = max(0.0, 1.0 - relative / self.floor) if self.floor > 0 else 0.0
        return self.entropy + self.rescue * missing


def clipped_loss(before: Floats, advantages: Floats, clip: float) -> Loss:
    """PPO's clipped surrogate (Schulman et al., 2017), negated.

    Args:
        before: Log-probabilities before the update, shape (n,).
        advantages: Shape (n,).
        clip: Bound on the change of the probabilities, as a share.
    """

    def loss(log_prob: Floats) -> tuple[float, Floats]:
        ratio = np.exp(np.clip(log_prob - before, -20.0, 20.0))
        plain, bounded = ratio * advantages, np.clip(ratio, 1 - clip, 1 + clip) * advantages
        counts = plain <= bounded
        return -float(np.minimum(plain, bounded).mean()), np.where(counts, -plain, 0.0) / len(log_prob)

    return loss


def likelihood_loss(weights: Floats) -> Loss:
    """The negative mean log-likelihood, weighted."""
    shares = weights / weights.sum()

    def loss(log_prob: Floats) -> tuple[float, Floats]:
        return -float(shares @ log_prob), -shares

    return loss


def standardised(rewards: Floats) -> Floats:
    """Advantages over the mean reward of the batch, in units of its spread; zeros where all are equal."""
    spread = float(rewards.std())
    return (rewards - rewards.mean()) / spread if spread > 1e-12 else np.zeros(len(rewards))
