"""Recorded times, read for the noise studies."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.clock import now

SPACES = Path(__file__).parent.parent / "spaces"
RESULTS = Path(__file__).parent.parent / "results"
REPEATS = "convolution__a100"


def repeats() -> NDArray[np.float64]:
    """Seconds of every configuration's 32 raw repeats; the first one also holds the wake-up of the device."""
    with gzip.open(SPACES / f"{REPEATS}.repeats_us.csv.gz", "rt") as file:
        return np.loadtxt(file, delimiter=",") * 1e-6


def medians() -> dict[str, NDArray[np.float64]]:
    """Median seconds of every configuration of the spaces whose repeats are not at hand."""
    found = {}
    for path in sorted(SPACES.glob("*.medians_ms.csv.gz")):
        with gzip.open(path, "rt") as file:
            found[path.name.partition(".")[0]] = np.loadtxt(file) * 1e-3
    return found


def write_result(name: str, result: Mapping[str, object]) -> None:
    """Writes `result` with its date into the folder of results, and prints it."""
    text = json.dumps({"date": now().isoformat(timespec="seconds"), **result}, indent=1)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
