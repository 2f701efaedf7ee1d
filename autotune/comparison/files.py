"""A comparison as files: CSV of every run and of every strategy and space, JSON of the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.clock import now
from autotune.comparison.grid import Cell
from autotune.comparison.result import Comparison
from autotune.display import pretty_json
from autotune.environment import read_environment


def write_files(found: Comparison, cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Writes `runs.csv`, `spaces.csv` and `comparison.json`; returns their paths."""
    runs, spaces, whole = folder / "runs.csv", folder / "spaces.csv", folder / "comparison.json"
    found.runs.to_csv(runs, index=False)
    found.spaces.to_csv(spaces, index=False)
    whole.write_text(as_json(found, cells) + "\n")
    return [runs, spaces, whole]


def as_json(found: Comparison, cells: Sequence[Cell]) -> str:
    """The whole for machines: settings, figures, tests, date and environment; what is not a number is null."""
    by_space = found.spaces.to_dict(orient="records")
    data = {
        "date": now().isoformat(timespec="seconds"),
        "environment": read_environment(),
        "settings": {
            "strategies": {c.strategy: c.source for c in cells},
            "seeds": sorted({c.seed for c in cells}),
            "budgets": found.budgets,
            "batch": cells[0].batch,
            "priors": {c.strategy: c.prior_name for c in cells},
        },
        "spaces": {c.space.name: _space(found, c) for c in cells},
        "summary": found.summary,
        "median_measurements_to_95_percent": found.to_within,
        "by_space": by_space,
        "ranks": found.ranks,
        "pairs": found.pairs,
        "failed": [{"strategy": t.strategy, "space": t.space, "seed": t.seed, "error": t.error} for t in found.errors],
    }
    return pretty_json(data)


def _space(found: Comparison, cell: Cell) -> Mapping[str, Any]:
    yardstick = found.yardsticks[cell.space.name]
    recording = yardstick.recording
    return {
        "digest": cell.space.digest,
        "schedules": len(recording.seconds),
        "failures": sum(not math.isfinite(t) for t in recording.seconds),
        "optimum_seconds": recording.optimum,
        "own_budget": yardstick.own_budget,
        "noise_floor": yardstick.noise_floor,
        "random_search_seconds": {k: float(yardstick.baseline[k - 1]) for k in found.budgets},
    }
