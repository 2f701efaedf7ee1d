"""What early stopping saves, and whether the winner stays the winner, over recorded spaces.

Each replay is a run of RUN configurations drawn at random, in random order. A candidate's samples are seven repeats in
a row of its own where they were recorded, else its recorded mean times the relative noise of a recorded
configuration during whose repeats the device kept its speed (in one of eighteen it changed by up to 1.8 times, for
many samples in a row). Time counted is that of the samples; a dropped candidate costs two.

    python experiments/noise/early_stopping.py [REPLAYS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray
from recorded import REPEATS, means, repeats, write_result

from autotune.early_stop import CAREFUL, EarlyStop
from autotune.measurement import Policy

RUN = 512
STEADY = 0.02
SAMPLES = Policy().samples
# At a rate as small as this it never knows the noise well enough to drop what is less than CAREFUL times slower.
RULES = {"none": lambda: EarlyStop(0.0), "three_times": lambda: EarlyStop(1e-9), "statistical": lambda: EarlyStop(0.01)}
Floats = NDArray[np.float64]


def replay(samples: Floats, best: int, rule: str) -> tuple[float, bool, int]:
    """One run over candidates in order.

    Returns:
        Seconds of device time, whether the truly fastest was dropped, and the candidate that looks fastest.
    """
    stop, fastest, winner, cost, lost = RULES[rule](), float("inf"), -1, 0.0, False
    for candidate, row in enumerate(samples.tolist()):
        if rule != "none" and min(row[:2]) > stop.limit(fastest):
            cost += sum(row[:2])
            lost |= candidate == best
            continue
        cost += sum(row)
        stop.observe(row)
        if median(row) < fastest:
            fastest, winner = median(row), candidate
    return cost, lost, winner


def study(truth: Floats, draw: Callable[[Floats, np.random.Generator], Floats], replays: int) -> dict[str, object]:
    """All rules over the same runs.

    Args:
        truth: Seconds of every configuration.
        draw: Gives SAMPLES samples of each of the configurations named.
        replays: Runs.
    """
    rows = {rule: [] for rule in RULES}
    for seed in range(replays):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(truth), RUN, replace=False)
        samples = draw(chosen, rng)
        place = int(np.argmin(truth[chosen]))
        for rule in RULES:
            cost, lost, winner = replay(samples, place, rule)
            rows[rule].append((cost, lost, winner == place, truth[chosen[winner]] / truth[chosen[place]] - 1.0))
    whole = np.array([cost for cost, *_ in rows["none"]])
    found: dict[str, object] = {"configurations": len(truth), "replays": replays}
    for rule, ended in rows.items():
        costs, lost, kept, regret = np.array(ended, dtype=np.float64).T
        found[rule] = {
            "device_time_saved": round(float(1.0 - np.mean(costs / whole)), 4),
            "fastest_dropped": float(lost.mean()),
            "fastest_wins": float(kept.mean()),
            "mean_regret": round(float(regret.mean()), 6),
        }
    return found


def main(replays: int = 200) -> None:
    """Replays every recorded space and writes the result."""
    raw = repeats()
    noise = raw / np.median(raw, axis=1, keepdims=True)
    windows = np.lib.stride_tricks.sliding_window_view(noise[:, 1:], SAMPLES, axis=1)
    steady = noise[np.abs(np.median(windows, axis=2) - 1.0).max(axis=1) <= STEADY]

    def own(chosen: Floats, rng: np.random.Generator) -> Floats:
        starts = rng.integers(1, raw.shape[1] - SAMPLES + 1, size=len(chosen))
        return raw[chosen[:, None], starts[:, None] + np.arange(SAMPLES)]

    def borrowed(truth: Floats) -> Callable[[Floats, np.random.Generator], Floats]:
        def draw(chosen: Floats, rng: np.random.Generator) -> Floats:
            starts = rng.integers(1, raw.shape[1] - SAMPLES + 1, size=len(chosen))
            lender = rng.integers(len(steady), size=len(chosen))
            return truth[chosen, None] * steady[lender[:, None], starts[:, None] + np.arange(SAMPLES)]

        return draw

    spaces = {f"{REPEATS} (own repeats)": study(np.median(raw, axis=1), own, replays)}
    for name, truth in means().items():
        spaces[f"{name} (borrowed noise)"] = study(truth, borrowed(truth), replays)
    write_result(
        "early_stopping",
        {
            "question": "device time saved by dropping candidates after two samples, and what it costs",
            "candidates_a_run": RUN,
            "samples": SAMPLES,
            "rules": {"three_times": f"both above {CAREFUL} times the best", "statistical": "EarlyStop(0.01)"},
            "spaces": spaces,
        },
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
