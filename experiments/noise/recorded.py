"""Recorded times, read for the noise studies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.clock import now
from autotune.recordings.native import SUFFIX, read_native

SPACES = Path(__file__).parent.parent / "spaces"
RESULTS = Path(__file__).parent.parent / "results"
REPEATS = "convolution__a100"
MEANS = ("convolution__a4000", "dedispersion__a100", "gemm__rtx2080ti", "pnpoly__rtx3090")


def repeats() -> NDArray[np.float64]:
    """Seconds of every configuration's 32 raw repeats; the first one also holds the wake-up of the device."""
    recording = read_native(SPACES / f"{REPEATS}{SUFFIX}")
    return np.array([samples for samples in recording.samples if len(samples)])


def means() -> dict[str, NDArray[np.float64]]:
    """Mean seconds of every configuration of spaces whose repeats are not at hand."""
    found = {}
    for name in MEANS:
        seconds = read_native(SPACES / f"{name}{SUFFIX}").seconds
        found[name] = seconds[np.isfinite(seconds)]
    return found


def write_result(name: str, result: Mapping[str, object]) -> None:
    """Writes `result` with its date into the folder of results, and prints it."""
    text = json.dumps({"date": now().isoformat(timespec="seconds"), **result}, indent=1)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(text)
