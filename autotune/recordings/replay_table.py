"""Reads a recorded space from a table, one configuration a row: tunables, then `status`, `time_ms` and what it cost."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd

from autotune.measurement import Status
from autotune.recordings.foreign import PHASES, stem_of
from autotune.recordings.known_kernels import known_context
from autotune.recordings.recording import Recording
from search_spaces.known_devices import find_device
from search_spaces.listed import ListedSpace
from search_spaces.space import SKETCH, Schedule

_STATUS = {"ok": Status.OK, "compile_error": Status.BUILD_ERROR, "runtime_error": Status.LAUNCH_ERROR}
_COSTS = ("compile_ms", "verification_ms", "benchmark_ms", "framework_ms")


def recording_of_table(path: Path, data: bytes) -> Recording:
    """The recording in a table's bytes; device and kernel are those that the file is named for.

    Raises:
        ValueError: It is no such table.
    """
    table = pd.read_csv(io.BytesIO(data))
    if not {"status", "time_ms"} <= set(table.columns) or not table["status"].isin(_STATUS).all():
        raise ValueError("it has no columns status and time_ms as such a table has")
    names = list(table.columns[: list(table.columns).index("status")])
    kernel, _, short = stem_of(path).partition("__")
    rows = table[names].itertuples(index=False, name=None)
    schedules = [Schedule(((SKETCH, kernel), *zip(names, map(int, row), strict=True))) for row in rows]
    status = tuple(_STATUS[s] for s in table["status"])
    ok = np.array([s is Status.OK for s in status])
    parts = {
        p: table[c].fillna(0.0).to_numpy(np.float64) * 1e-3 for p, c in zip(PHASES, _COSTS, strict=True) if c in table
    }
    deviation = (
        table["time_std_ms"].fillna(0.0).to_numpy(np.float64) * 1e-3 if "time_std_ms" in table else np.zeros(len(ok))
    )
    hardware = find_device(short)
    return Recording(
        name=stem_of(path),
        kernel=kernel,
        device=short if hardware is None else hardware.model.name,
        space=ListedSpace.of(schedules, identity=stem_of(path)),
        seconds=np.where(ok, table["time_ms"].to_numpy(np.float64) * 1e-3, np.inf),
        deviation=np.where(ok, deviation, 0.0),
        cost=np.sum(list(parts.values()), axis=0) if parts else np.zeros(len(ok)),
        status=status,
        context=known_context(kernel, short),
        provenance={"source": "a table of a recorded space"},
        repeats=int(table["n_repeats"].max()) if "n_repeats" in table else 0,
        phases=parts,
    )
