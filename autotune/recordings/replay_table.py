"""Reads a recorded space from a table, one configuration a row: tunables, then `status`, `time_ms` and what it cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from autotune.measurement import Status
from autotune.recordings.recording import Recording
from search_spaces.errors import BadLog
from search_spaces.listed import ListedSpace
from search_spaces.space import SKETCH, Schedule

_STATUS = {"ok": Status.OK, "compile_error": Status.BUILD_ERROR, "runtime_error": Status.LAUNCH_ERROR}
_COSTS = ("compile_ms", "verification_ms", "benchmark_ms", "framework_ms")


def read_replay_table(path: Path) -> Recording:
    """Reads `kernel__device.csv.gz`: every column before `status` is a tunable.

    Raises:
        BadLog: It cannot be read, or is no such table.
    """
    try:
        table = pd.read_csv(path)
        names = list(table.columns[: list(table.columns).index("status")])
        status = tuple(_STATUS[s] for s in table["status"])
        seconds = table["time_ms"].to_numpy(np.float64) * 1e-3
    except (OSError, ValueError, KeyError, pd.errors.ParserError) as error:
        raise BadLog(f"{path} is no table of a recorded space ({error})", "name a kernel__device.csv.gz") from error
    kernel, _, device = path.name.removesuffix(".csv.gz").partition("__")
    rows = table[names].itertuples(index=False, name=None)
    schedules = [Schedule(((SKETCH, kernel), *zip(names, map(int, row), strict=True))) for row in rows]
    ok = np.array([s is Status.OK for s in status])
    return Recording(
        name=f"{kernel}__{device}",
        kernel=kernel,
        device=device,
        space=ListedSpace.of(schedules, identity=path.name),
        seconds=np.where(ok, seconds, np.inf),
        deviation=np.where(ok, table["time_std_ms"].fillna(0.0).to_numpy(np.float64) * 1e-3, 0.0),
        cost=table[[c for c in _COSTS if c in table]].fillna(0.0).sum(axis=1).to_numpy(np.float64) * 1e-3,
        status=status,
    )
