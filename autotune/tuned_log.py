"""The tuned log: the best verified schedule per workload, target and device, derived from journals."""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.generators.base import Resources
from autotune.journal import FILE as JOURNAL
from autotune.journal import RunLog, load_runs
from autotune.measurement import Policy, Status
from autotune.records import Ratio, ScheduleData, TaskData
from search_spaces.errors import BadLog, CannotWrite, InvalidSchedule
from search_spaces.operator import Workload
from search_spaces.space import Schedule

SCHEMA = "tuned-log/1"
FILE = "tuned-log.json"
# Largest file that is read: thousands of entries.
MOST_BYTES = 64 * 1024 * 1024
_LONGEST_NAME = 4096
RUNNERS_UP = 4


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
        race_failed: Why its final race did not end, "" where it ended or was never begun.
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
        source: The file of another tuner that it was imported from, "" where this project found it.
        held: Whether `verify` has measured an imported one since: device, software and times are then of that.
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
    race_failed: str = ""
    source: str = ""
    held: bool = False

    @property
    def unverified(self) -> bool:
        """Whether nobody has verified it: its schedule may be wrong, and its times of anything."""
        return bool(self.source) and not self.held


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
        race_failed=next((g.why for g in log.given_up if g.run == run.run and not raced), ""),
    )


def _runners_up(log: RunLog, winner: Schedule, *, raced: bool) -> tuple[RunnerUp, ...]:
    """The other finalists by the race's times where there was one, else by their own trials'."""
    if raced:
        race = log.races[-1]
        pairs = zip(race.schedules, race.samples, strict=True)
        times = {Schedule.from_json(s): statistics.median(t) for s, t in pairs if s != race.default}
    else:
        times = {m.schedule: m.seconds for m in log.trials.fastest(RUNNERS_UP + 1)}
    others = sorted((seconds, i, s) for i, (s, seconds) in enumerate(times.items()) if s != winner)
    return tuple(RunnerUp(dict(s.items), seconds) for seconds, _, s in others[:RUNNERS_UP])


def entries_of(path: Path) -> list[Entry]:
    """Entries of a run's folder, a journal, a tuned log (its name ends in `.json`), or a folder of folders of logs."""
    if path.suffix == ".json":
        return list(read_tuned_log(path).entries)
    if path.is_dir() and not (path / JOURNAL).exists():
        logs = sorted(path.glob(f"*/*{FILE}"))
        if logs:
            return [entry for log in logs for entry in read_tuned_log(log).entries]
    return [e for log in load_runs(path) if (e := entry_of(log)) is not None]


EntryKey = tuple[Workload, str, str, str, int]


def entry_key(entry: Entry) -> EntryKey:
    """Workload, target, and the device by name, arch and units: its driver and memory make no other entry."""
    device = entry.device
    return entry.task.workload, entry.task.target, device.name, device.arch, device.units


def best_entries(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The best entry of each workload, target and device, in the order in which they occur first; see `ranked`."""
    return tuple(group[0] for group in ranked(entries))


def ranked(entries: Iterable[Entry]) -> tuple[tuple[Entry, ...], ...]:
    """The entries of each workload, target and device, best first: verified before not, raced before not, by time.

    Times of different spaces are comparable, those of different devices are not.
    """
    groups: dict[EntryKey, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry_key(entry), []).append(entry)
    return tuple(tuple(sorted(group, key=_rank, reverse=True)) for group in groups.values())


def _rank(entry: Entry) -> tuple[bool, bool, float]:
    return not entry.unverified, entry.raced, -entry.seconds


def write_tuned_log(folder: Path, logs: Sequence[RunLog]) -> Path:
    """Writes the tuned log of a run's folder, whole or not at all.

    Raises:
        CannotWrite: The folder cannot be written.
    """
    path = folder / FILE
    write_entries(path, [e for log in logs if (e := entry_of(log)) is not None])
    return path


def write_entries(path: Path, entries: Sequence[Entry]) -> None:
    """Writes a tuned log, whole or not at all.

    Raises:
        CannotWrite: It cannot be written.
    """
    # A name of its own: others may write the same entry now.
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex}.partial")
    try:
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(TunedLog(SCHEMA, tuple(entries))), indent=1))
        partial.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written ({error.strerror})", "choose another --out") from error


class _Beginning(msgspec.Struct):
    """What tells which version wrote a log, whatever else is in it."""

    schema: str


def read_tuned_log(path: Path) -> TunedLog:
    """Reads a tuned log; runs nothing that it names.

    Raises:
        BadLog: Not there, no tuned log, larger than MOST_BYTES, or of another schema.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
        schema = msgspec.json.decode(data, type=_Beginning).schema
        if schema != SCHEMA:
            raise BadLog(
                f"{path} has schema {schema[:40]!r}, this version reads {SCHEMA}", "install a newer kernel-autotune"
            )
        log = msgspec.json.decode(data, type=TunedLog)
        for entry in log.entries:
            _require_sound(entry)
    except OSError as error:
        raise BadLog(
            f"no tuned log at {path} ({error.strerror})", "name a run's folder or its tuned-log.json"
        ) from error
    except (msgspec.MsgspecError, ValueError, RecursionError, InvalidSchedule) as error:
        why = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadLog(f"{path} is no tuned log ({why})", "derive it again with 'autotune best'") from error
    return log


def _require_sound(entry: Entry) -> None:
    """What the types do not say.

    Raises:
        ValueError: A time that cannot be, a workload that names an axis twice, or a name that no line can show.
        InvalidSchedule: A schedule that starts with no sketch.
    """
    named = (entry.task, entry.device, entry.source, entry.schedule, [r.schedule for r in entry.runners_up])
    if not all(text.isprintable() and len(text) <= _LONGEST_NAME for text in _texts(msgspec.to_builtins(named))):
        raise ValueError("a name in it is too long or holds control characters")
    for times in ((entry.seconds,), entry.samples, tuple(r.seconds for r in entry.runners_up)):
        if not all(0.0 < t < 1e9 for t in times):
            raise ValueError(f"{entry.task.workload} has a time that cannot be")
    if not entry.samples:
        raise ValueError(f"{entry.task.workload} has no samples")
    if len(dict(entry.task.workload.axes)) != len(entry.task.workload.axes):
        raise ValueError(f"{entry.task.workload} names an axis twice")
    for data in (entry.schedule, *(r.schedule for r in entry.runners_up)):
        Schedule.from_json(data)


def _texts(data: object) -> Iterator[str]:
    """Every text in plain data, keys too."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _texts(key)
            yield from _texts(value)
    elif isinstance(data, (list, tuple)):
        for value in data:
            yield from _texts(value)


def verified_counts(log: RunLog) -> dict[str, int]:
    """Trials by status, the commonest first."""
    counts = {str(status): count for status, count in log.trials.counts().items()}
    return dict(sorted(counts.items(), key=lambda item: (item[0] != Status.OK, -item[1])))
