"""Journals without a search: trials of a made-up sketch on a GPU, as many as wanted, with every kind of record."""

import math

import numpy as np

from autotune.devices.base import DeviceInfo
from autotune.devices.telemetry import Conditions
from autotune.environment import Environment
from autotune.generators.base import Resources
from autotune.journal import Journal
from autotune.measurement import Measurement, Phases, Policy, Status
from autotune.race import ratio
from autotune.records import SCHEMA, RaceRecord, Roof, RunRecord, TaskData, TrialRecord
from search_spaces.operator import Workload
from search_spaces.space import Schedule

BLOCKS = (16, 32, 64, 128, 256)
WARPS = (1, 2, 4, 8)
STAGES = (1, 2, 3, 4, 5)
ORDERS = ("rows", "columns")
EVIL = "<script>alert('&')</script> wants 240 KiB"
DEVICE = DeviceInfo("cuda", "NVIDIA H200", "sm_90", 132, 150 << 30, "580.1", 60 << 20)


def run_record(trials, run="r1", **fields):
    workload = Workload("made", (("M", 4096), ("N", 4096), ("K", 4096)), "float16")
    made = {
        "schema": SCHEMA,
        "run": run,
        "started": "2026-01-01T00:00:00+00:00",
        "task": TaskData("made", workload, "cuda -arch=sm_90", (), "k", "f"),
        "device": DEVICE,
        "foreign": False,
        "environment": Environment({"triton": "3.6.0"}, "3.11", "Linux"),
        "policy": Policy(),
        "strategy": "hybrid",
        "seed": 0,
        "trials": trials,
        "minutes": None,
        "floor_seconds": 1.4e-4,
        "operations": 2.0 * 4096**3,
        "bytes": 6.0 * 4096**2,
        "roof": Roof("NVIDIA H200", 9.89e14, 4.8e12, "datasheet"),
    }
    return RunRecord(**{**made, **fields})


def _schedule(number):
    """The schedule of a number, each another one; every ninth is of a second sketch with one knob less."""
    place, values = number, []
    for options in (BLOCKS, BLOCKS, WARPS, STAGES, ORDERS):
        place, index = divmod(place, len(options))
        values.append(options[index])
    items = [("block_m", values[0]), ("block_n", values[1]), ("num_warps", values[2]), ("num_stages", values[3])]
    if number % 9:
        return Schedule(
            (("sketch", "made.tiled"), *items, ("order", values[4]), ("even", place % 2 == 1), ("tile", (place + 1, 2)))
        )
    return Schedule((("sketch", "made.plain"), *items, ("group", place + 1)))


def seconds_of(schedule):
    bowl = (math.log2(schedule["block_m"]) - 7) ** 2 + (math.log2(schedule["block_n"]) - 6) ** 2
    return (
        2e-4 * (1 + 0.2 * bowl + 0.02 * (int(schedule.key, 16) % 7)) * (1.3 if schedule.sketch == "made.plain" else 1.0)
    )


def _measurement(schedule, rng):
    phases = Phases(build=2.0 + float(rng.random()), check=0.01, measure=0.005)
    if schedule["num_stages"] == 5 and schedule["block_m"] == 256:
        return Measurement(schedule, Status.BUILD_ERROR, detail=EVIL, phases=Phases(build=phases.build))
    if schedule["num_warps"] == 1 and schedule["block_n"] == 256:
        return Measurement(schedule, Status.WRONG_RESULT, detail="deviates 3.5 times the tolerance", phases=phases)
    return Measurement(
        schedule,
        Status.OK,
        tuple((seconds_of(schedule) * (1 + 0.01 * rng.random(5))).tolist()),
        error=0.1,
        resources=Resources(128, 96 << 10, 0, 128),
        binary=schedule.key,
        phases=phases,
        deterministic=True,
        conditions=Conditions(1980, 3201, 300.0, 45),
    )


def measurements(trials, seed=0):
    """Trials of distinct schedules, in an order that the seed decides."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(max(trials, 1000))[:trials]
    return [_measurement(_schedule(int(number)), rng) for number in order]


def race_of(made, run="r1", seed=0):
    """A race of the five fastest and the slowest trial that ran, which is the default."""
    rng = np.random.default_rng(seed)
    ran = sorted((m for m in made if m.status is Status.OK), key=lambda m: m.seconds)
    contestants = [m.schedule for m in (*ran[:5], ran[len(ran) // 4])]
    samples = [tuple((1.1 * seconds_of(s) * (1 + 0.02 * rng.random(40))).tolist()) for s in contestants]
    library = {"cuBLAS": tuple((2.2e-4 * (1 + 0.02 * rng.random(40))).tolist())}
    return RaceRecord(
        run=run,
        winner=dict(contestants[0].items),
        default=dict(contestants[-1].items),
        schedules=tuple(dict(s.items) for s in contestants),
        samples=tuple(samples),
        library=library,
        over_default=ratio(samples[-1], samples[0]),
        over_library=ratio(library["cuBLAS"], samples[0]),
        tied=1,
        conditions=(Conditions(1980, 3201, 600.0, 50),),
    )


def write_journal(folder, trials=300, raced=True, choosers=("prior", "order"), **fields):
    """A journal of one run in `folder`, whose measurements it returns; a trial ends every half second."""
    made = measurements(trials)
    with Journal(folder) as journal:
        journal.append(run_record(trials, **fields))
        for number, measurement in enumerate(made):
            chooser = choosers[number % len(choosers)] if choosers else ""
            predicted = 1.1 * seconds_of(measurement.schedule) if number > 40 else None
            journal.append(TrialRecord.of("r1", number, 5.0 + 0.5 * number, measurement, chooser, predicted))
        if raced:
            journal.append(race_of(made))
    return made
