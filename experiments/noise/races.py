"""How often the race errs: schedules raced against themselves, and against one that is 2 % slower.

Two sources of noise: the raw repeats of recorded configurations, drawn in blocks so that neighbours stay neighbours,
and a synthetic device with jitter, outliers, drift and a coarse clock.

    python experiments/noise/races.py [RACES]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from recorded import REPEATS, repeats, write_result

from autotune.look import Look
from autotune.measurement import Measurement, Status
from autotune.race import FINALISTS, LOOKS, run_race
from search_spaces.space import Schedule

GAP = 1.02
BLOCK = 4
Draw = Callable[[int], NDArray[np.float64]]
"""Gives seconds of so many rounds of one schedule, in order."""


def from_repeats(raw: NDArray[np.float64], rng: np.random.Generator) -> Draw:
    """Blocks of a configuration's repeats, without the wake-up."""
    steady = raw[1:]

    def draw(count: int) -> NDArray[np.float64]:
        starts = rng.integers(len(steady), size=count // BLOCK + 1)
        index = (starts[:, None] + np.arange(BLOCK)).ravel()[:count]
        return steady[index % len(steady)]

    return draw


def synthetic(rng: np.random.Generator) -> Draw:
    """1 % jitter, an outlier of up to 1.5 times in every fiftieth sample, a clock of 1 microsecond on a millisecond."""

    def draw(count: int) -> NDArray[np.float64]:
        outliers = np.where(rng.random(count) < 0.02, rng.uniform(1.0, 1.5, count), 1.0)
        return np.round(1e-3 * outliers * np.exp(rng.normal(0, 0.01, count)), 6)

    return draw


def race(draw: Draw, factors: Sequence[float], seed: int, rng: np.random.Generator) -> tuple[bool, float, int]:
    """Races a default (the first factor) and others.

    Returns:
        Whether another than the default won, the speed-up reported, and the looks that were void.
    """
    schedules = [Schedule((("sketch", "noise.study"), ("number", i))) for i in range(len(factors))]
    trials = [
        Measurement(s, Status.OK, tuple(f * draw(7)), binary=str(s["number"]))
        for s, f in zip(schedules, factors, strict=True)
    ]

    def measure(racing: Sequence[Schedule], rounds: int, *_: object) -> Look:
        # All contestants share what the device does from round to round.
        wander = np.exp(np.cumsum(rng.normal(0, 0.002, rounds)))
        return Look({s: list(factors[s["number"]] * draw(rounds) * wander) for s in racing}, {})

    result = run_race(measure, trials, schedules[0], seed)
    return result.winner != schedules[0], result.over_default.times, result.voided


def study(draws: Sequence[Draw], rng: np.random.Generator) -> dict[str, object]:
    """The rates over one race per source of noise."""
    shapes = {
        "against_itself": (1.0, 1.0),
        f"against_{FINALISTS}_of_itself": (1.0,) * (FINALISTS + 1),
        "against_2_percent_faster": (GAP, 1.0),
        "against_2_percent_slower": (1.0, GAP),
    }
    found: dict[str, object] = {"races_each": len(draws)}
    for name, factors in shapes.items():
        ended = [race(draw, factors, seed, rng) for seed, draw in enumerate(draws)]
        wins = [gain for won, gain, _ in ended if won]
        found[name] = {
            "default_lost": len(wins) / len(ended),
            "median_reported": float(np.median(wins)) if wins else None,
            "void_looks": sum(void for *_, void in ended) / len(ended),
        }
    return found


def main(races: int = 200) -> None:
    """Runs both studies and writes the result."""
    rng = np.random.default_rng(0)
    raw = repeats()
    chosen = raw[rng.choice(len(raw), races, replace=False)]
    result = {
        "question": "how often does a race end wrongly",
        "looks": LOOKS,
        "recorded": {"source": REPEATS, **study([from_repeats(r, rng) for r in chosen], rng)},
        "synthetic": study([synthetic(rng) for _ in range(races)], rng),
    }
    write_result("race_noise_recorded", result)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
