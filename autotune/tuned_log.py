"""The tuned log: the best verified schedule per workload, target and device, derived from journals."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.generators.base import Resources
from autotune.journal import RunLog, load_runs
from autotune.measurement import Policy, Status
from autotune.records import Ratio, ScheduleData, TaskData
from search_spaces.errors import BadLog, CannotWrite
from search_spaces.space import Schedule

SCHEMA = "tuned-log/1"
FILE = "tuned-log.json"
_RUNNERS_UP = 4


class RunnerUp(msgspec.Struct, frozen=True):
    """A schedule that was nearly as fast, with its median seconds."""

    schedule: ScheduleData
    seconds: float


class Entry(msgspec.Struct, frozen=True):
    """The best schedule of one workload on one target and device, with its evidence.

    Attributes:
        task: What was tuned.
        device: What it was measured on.
        foreign: Measured on a device of another arch than the target's: no result for that target.
        environment: The software.
        policy: How it was measured.
        schedule: The schedule.
        seconds: Median of `samples`.
        samples: Raw seconds: of the final race where there was one, else of the trial.
        raced: Whether a final race compared it with the default.
        over_default: How many times faster than the untuned default.
        over_library: How many times faster than the fastest library call, None where none was timed.
        library: Name of that call, "" where none was timed.
        roofline: Share of the roofline reached.
        operations: Arithmetic operations of the workload.
        bytes: Bytes it must move.
        resources: What the kernel uses.
        binary: Hash of the program.
        trials: Trials behind it.
        strategy: What searched.
        seed: Its seed.
        identity: Fingerprint of everything that the times depend on.
        runners_up: The next fastest, fastest first: on another device one of them may be faster.
    """

    task: TaskData
    device: DeviceInfo
    foreign: bool
    environment: Environment
    policy: Policy
    schedule: ScheduleData
    seconds: float
    samples: tuple[float, ...]
    raced: bool
    over_default: Ratio | None
    over_library: Ratio | None
    library: str
    roofline: float
    operations: float
    bytes: float
    resources: Resources
    binary: str
    trials: int
    strategy: str
    seed: int
    identity: str = ""
    runners_up: tuple[RunnerUp, ...] = ()


class TunedLog(msgspec.Struct, frozen=True):
    """A file of entries."""

    schema: str
    entries: tuple[Entry, ...]


def entry_of(log: RunLog) -> Entry | None:
    """The best of one task: its last race's winner, or the fastest trial where none was raced since."""
    best = log.best
    if best is None:
        return None
    run = log.runs[-1]
    schedule, samples, raced = best.schedule, best.samples, False
    over_default = over_library = None
    library = ""
    if log.races and log.races[-1].run == run.run:
        race = log.races[-1]
        schedule, raced = Schedule.from_json(race.winner), True
        samples = race.samples[race.schedules.index(race.winner)]
        over_default, over_library = race.over_default, race.over_library
        library = min(race.library, key=lambda name: statistics.median(race.library[name]), default="")
    trial = log.trials.get(schedule, best)
    seconds = statistics.median(samples)
    return Entry(
        task=run.task,
        device=run.device,
        foreign=run.foreign,
        environment=run.environment,
        policy=run.policy,
        schedule=dict(schedule.items),
        seconds=seconds,
        samples=tuple(samples),
        raced=raced,
        over_default=over_default,
        over_library=over_library,
        library=library,
        roofline=run.floor_seconds / seconds,
        operations=run.operations,
        bytes=run.bytes,
        resources=trial.resources,
        binary=trial.binary,
        trials=len(log.trials),
        strategy=run.strategy,
        seed=run.seed,
        identity=run.identity,
        runners_up=_runners_up(log, schedule, raced=raced),
    )


def _runners_up(log: RunLog, winner: Schedule, *, raced: bool) -> tuple[RunnerUp, ...]:
    """The other finalists by the race's times where there was one, else by their own trials'."""
    if raced:
        race = log.races[-1]
        pairs = zip(race.schedules, race.samples, strict=True)
        times = {Schedule.from_json(s): statistics.median(t) for s, t in pairs if s != race.default}
    else:
        times = {s: m.seconds for s, m in log.trials.items() if m.status is Status.OK}
    others = sorted((seconds, i, s) for i, (s, seconds) in enumerate(times.items()) if s != winner)
    return tuple(RunnerUp(dict(s.items), seconds) for seconds, _, s in others[:_RUNNERS_UP])


def entries_of(path: Path) -> list[Entry]:
    """Entries of a run's folder, a journal, or a tuned log (a file that ends in `.json`)."""
    if path.suffix == ".json":
        return list(read_tuned_log(path).entries)
    return [e for log in load_runs(path) if (e := entry_of(log)) is not None]


def write_tuned_log(folder: Path, logs: Sequence[RunLog]) -> Path:
    """Writes the tuned log of a run's folder, whole or not at all.

    Raises:
        CannotWrite: The folder cannot be written.
    """
    entries = tuple(e for log in logs if (e := entry_of(log)) is not None)
    path = folder / FILE
    partial = path.with_suffix(".partial")
    try:
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(TunedLog(SCHEMA, entries)), indent=1))
        partial.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror})", "choose another --out") from error
    return path


def read_tuned_log(path: Path) -> TunedLog:
    """Reads a tuned log.

    Raises:
        BadLog: Not there, no tuned log, or of a newer schema.
    """
    try:
        log = msgspec.json.decode(path.read_bytes(), type=TunedLog)
    except OSError as error:
        raise BadLog(
            f"no tuned log at {path} ({error.strerror})", "name a run's folder or its tuned-log.json"
        ) from error
    except msgspec.DecodeError as error:
        raise BadLog(f"{path} is no tuned log ({error})", "derive it again with 'autotune best'") from error
    if log.schema != SCHEMA:
        raise BadLog(f"{path} has schema {log.schema}, this version reads {SCHEMA}", "install a newer kernel-autotune")
    return log


def verified_counts(log: RunLog) -> dict[str, int]:
    """Trials by status, the commonest first."""
    counts: dict[str, int] = {}
    for trial in log.trials.values():
        counts[trial.status] = counts.get(trial.status, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (item[0] != Status.OK, -item[1])))
