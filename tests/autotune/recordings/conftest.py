"""A small recording with everything in it: two sketches, tuples, words, flags, failures and raw repeats."""

import numpy as np
import pytest

from autotune.measurement import Status
from autotune.recordings.recording import Recording
from search_spaces.errors import BadLog
from search_spaces.knob import Family
from search_spaces.listed import ListedSpace
from search_spaces.operator import Workload
from search_spaces.schedule import Schedule

FAMILIES = {"tile": Family.TILE_SIZES, "stages": Family.SHARED_MEMORY, "order": Family.LOOP_ORDER}
FAILURES = [s for s in Status if s is not Status.OK]


def schedules():
    tiled = [
        Schedule((("sketch", "made.tiled"), ("tile", tile), ("stages", stages), ("order", order)))
        for tile in ((8,), (8, 4, 2), (16, 1, 4))
        for stages in (1, 3)
        for order in ("rows", "columns")
    ]
    plain = [Schedule((("sketch", "made.plain"), ("stages", s), ("wide", w))) for s in (1, 2) for w in (False, True)]
    return tiled + plain


def made(*, raw=True, seed=3):
    rng = np.random.default_rng(seed)
    points = schedules()
    status = [FAILURES[i % len(FAILURES)] if i % 3 == 2 else Status.OK for i in range(len(points))]
    short = np.vectorize(lambda x: float(f"{x:.6g}"))
    samples = tuple(short(rng.uniform(1e-5, 1e-3, 5)) if s is Status.OK else np.array([]) for s in status)
    ok = np.array([s is Status.OK for s in status])
    phases = {p: short(rng.uniform(0, 2, len(points))) for p in ("build", "check", "measure")}
    return Recording(
        name="made__h200__m64-float16",
        kernel="made",
        device="NVIDIA H200",
        space=ListedSpace.of(points, FAMILIES, identity="made__h200__m64-float16"),
        seconds=np.array([s.mean() if len(s) else np.inf for s in samples]),
        deviation=np.array([s.std(ddof=1) if len(s) else 0.0 for s in samples]),
        cost=np.sum(list(phases.values()), axis=0),
        status=tuple(status),
        samples=samples if raw else (),
        context={"axis M": 6.0, "bits": 16.0},
        provenance={"date": "2026-11-30T09:00:00+00:00", "licence": "Apache-2.0"},
        repeats=5 if ok.any() else 0,
        phases=phases,
        workload=Workload("made", (("M", 64), ("N", 32)), "float16"),
        target="cuda -arch=sm_90",
        environment={"triton": "3.6.0"},
    )


@pytest.fixture
def told():
    """Reads a file that may be damaged: the recording, or None where one line said that it is none."""

    def read(reader, path):
        try:
            return reader(path)
        except BadLog as error:
            line = str(error)
        assert "\n" not in line
        return None

    return read


@pytest.fixture
def recording():
    return made()
