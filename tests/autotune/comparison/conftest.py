import gzip
from itertools import product

import numpy as np
import pytest

from autotune.measurement import Status
from autotune.recordings.recording import Recording
from search_spaces.listed import ListedSpace
from search_spaces.schedule import SKETCH, Schedule

TILES, STAGES, WARPS = (1, 2, 4, 8, 16, 32, 64, 128), (1, 2, 3, 4), (1, 2, 4, 8)


def rows():
    """128 schedules with one valley, an eighth of them failures, costs that differ, noise of 2 %."""
    rng = np.random.default_rng(7)
    for tile, stages, warps in product(TILES, STAGES, WARPS):
        away = abs(np.log2(tile) - 4) + abs(stages - 3) + abs(np.log2(warps) - 2)
        failed = tile * stages > 256 or (tile == 1 and warps == 8)
        seconds = 1e-3 * (1.0 + 0.3 * away + 0.05 * rng.random())
        yield tile, stages, warps, failed, seconds, 1.0 + rng.random()


def made_recording(name="bowl__board", noise=0.02):
    data = list(rows())
    schedules = [Schedule(((SKETCH, "bowl"), ("tile", t), ("stages", s), ("warps", w))) for t, s, w, *_ in data]
    failed = np.array([f for *_, f, _, _ in data])
    seconds = np.where(failed, np.inf, [s for *_, s, _ in data])
    return Recording(
        name=name,
        kernel="bowl",
        device="board",
        space=ListedSpace.of(schedules),
        seconds=seconds,
        deviation=np.where(failed, 0.0, noise * np.array([s for *_, s, _ in data])),
        cost=np.array([c for *_, c in data]),
        status=tuple(Status.LAUNCH_ERROR if f else Status.OK for f in failed),
    )


@pytest.fixture
def recording():
    return made_recording()


@pytest.fixture
def folder(tmp_path):
    """Two recordings as files."""
    spaces = tmp_path / "spaces"
    spaces.mkdir()
    for device, factor in (("slow", 2.0), ("fast", 1.0)):
        lines = ["tile,stages,warps,status,time_ms,time_std_ms,compile_ms"]
        for tile, stages, warps, failed, seconds, cost in rows():
            times = "runtime_error,," if failed else f"ok,{1e3 * seconds * factor},{20 * seconds}"
            lines.append(f"{tile},{stages},{warps},{times},{1e3 * cost}")
        (spaces / f"bowl__{device}.csv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    return spaces
