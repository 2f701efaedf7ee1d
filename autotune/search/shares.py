"""Who chooses next: shares that follow what has paid."""

from __future__ import annotations

from collections.abc import Mapping

# Choices that an arm is believed to have behind it at the start, one of which paid for every unit of its weight.
_BEFORE = 8.0
# What a choice or a success still counts after each further choice of anyone.
_FADING = 0.98


class Shares:
    """Deals out choices to arms: half of them by weight alone, half also by how often their latest choices paid.

    Choices are dealt by strides: each goes to the arm that is furthest behind its share. So no share, however small,
    is rounded to nothing, and no arm waits longer than its share says.

    Args:
        weights: Of each arm before anything is known, positive.
    """

    def __init__(self, weights: Mapping[str, float]) -> None:
        self._weights = dict(weights)
        self._tries = dict.fromkeys(weights, _BEFORE)
        self._paid = dict.fromkeys(weights, 1.0)
        self._behind = dict.fromkeys(weights, 0.0)

    def __call__(self) -> dict[str, float]:
        """The share of each arm, together 1."""
        credits = {a: w * self._paid[a] / self._tries[a] for a, w in self._weights.items()}
        whole, earned = sum(self._weights.values()), sum(credits.values())
        return {a: 0.5 * w / whole + 0.5 * credits[a] / earned for a, w in self._weights.items()}

    def reweigh(self, arm: str, weight: float) -> None:
        """Sets the weight of an arm."""
        self._weights[arm] = weight

    def deal(self) -> str:
        """The arm that chooses next."""
        for arm, share in self().items():
            self._behind[arm] += share
        first = max(self._behind, key=self._behind.__getitem__)
        self._behind[first] -= 1.0
        return first

    def credit(self, arm: str, payoff: float) -> None:
        """Takes in what a choice of `arm` was worth, 0 to 1."""
        for other in self._weights:
            self._tries[other] = _BEFORE + _FADING * (self._tries[other] - _BEFORE)
            self._paid[other] = 1.0 + _FADING * (self._paid[other] - 1.0)
        self._tries[arm] += 1.0
        self._paid[arm] += payoff
