"""The records of a journal, schema `tunelog/1`: one JSON object a line, told apart by `kind`."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from autotune.devices.base import DeviceInfo
from autotune.devices.telemetry import Conditions
from autotune.environment import Environment
from autotune.generators.base import Resources
from autotune.measurement import Measurement, Phases, Policy, Status
from search_spaces.hardware import Hardware
from search_spaces.operator import TensorSpec, Workload
from search_spaces.schedule import SKETCH
from search_spaces.space import Schedule
from search_spaces.task import Task

SCHEMA = "tunelog/1"
ScheduleData = dict[str, int | str | bool | tuple[int, ...]]


@dataclass(frozen=True)
class TensorData:
    """One argument with its layout: `strides` in elements."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    output: bool

    @staticmethod
    def of(spec: TensorSpec) -> TensorData:
        """The layout of a dense, row-major argument."""
        strides = [1]
        for extent in reversed(spec.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return TensorData(spec.name, spec.dtype, spec.shape, tuple(strides[: len(spec.shape)]), spec.output)


@dataclass(frozen=True)
class TaskData:
    """What was tuned, as plain data.

    Attributes:
        reference: How the operator was named.
        workload: Its axes and dtype.
        target: As `str(Target)`.
        only: Sketch name prefixes kept.
        key: Identity of workload, target and space together.
        space: Fingerprint of the space.
        tensors: The arguments with their layouts.
        source: Hash of the operator's source.
        sketches: Sketch -> hash of its source.
    """

    reference: str
    workload: Workload
    target: str
    only: tuple[str, ...]
    key: str
    space: str
    tensors: tuple[TensorData, ...] = ()
    source: str = ""
    sketches: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def of(task: Task) -> TaskData:
        """The data of a task."""
        return TaskData(
            reference=task.reference,
            workload=task.workload,
            target=str(task.target),
            only=task.only,
            key=task.key,
            space=task.space.fingerprint,
            tensors=tuple(TensorData.of(spec) for spec in task.operator.tensors(task.workload)),
            source=task.operator.source_hash,
            sketches={name: sketch.source_hash for name, sketch in task.sketches.items()},
        )


@dataclass(frozen=True)
class Roof:
    """The two lines of the roofline that a run is held against.

    Attributes:
        model: Device model they are of; the arch's representative where the device's own is in no table.
        peak: Operations per second in the workload's dtype, None where it is not known.
        bandwidth: Bytes per second of device memory, None where it is not known.
        source: Where the numbers are from.
    """

    model: str = ""
    peak: float | None = None
    bandwidth: float | None = None
    source: str = ""

    @staticmethod
    def of(hardware: Hardware, dtype: str) -> Roof:
        """The roof of `hardware` for a dtype."""
        known = [v if v < float("inf") else None for v in (hardware.peak(dtype), hardware.model.bandwidth)]
        return Roof(hardware.model.name, known[0], known[1], hardware.model.source)


class RunRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="run"):
    """Starts a run, or its continuation: what all of its trials share.

    Attributes:
        schema: `tunelog/1`.
        run: Unique name.
        started: UTC, ISO 8601.
        task: What is tuned.
        device: What is measured on.
        foreign: The device's arch is not the target's.
        environment: The software.
        policy: How candidates are measured.
        strategy: Name of the strategy.
        seed: Of everything random in the run.
        trials: Trials the run is to have in all, continuations included.
        minutes: Time limit of each continuation, None for none.
        floor_seconds: The roofline's bound for the workload on this device.
        operations: Arithmetic operations of the workload.
        bytes: Bytes it must move.
        identity: Fingerprint of everything that the run's times depend on.
        roof: Peak and bandwidth behind `floor_seconds`.
        prior: What the strategy knew of other tasks: "shipped" or a file, with its hash; "none" for nothing,
            "" where it was not recorded.
    """

    schema: str
    run: str
    started: str
    task: TaskData
    device: DeviceInfo
    foreign: bool
    environment: Environment
    policy: Policy
    strategy: str
    seed: int
    trials: int
    minutes: float | None
    floor_seconds: float
    operations: float
    bytes: float
    identity: str = ""
    roof: Roof = Roof()
    prior: str = ""


class TrialRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="trial"):
    """One trial; `samples` in seconds, present if and only if the status is ok.

    `chooser` is the part of the strategy that asked for it, "warm_start" where a file proposed it, "" where neither
    tells; `predicted` the seconds that the cost model then expected, None where it had no expectation. `device` is
    which of the run's devices measured it, "" where none did or it was not recorded.
    """

    run: str
    trial: int
    at: float
    schedule: ScheduleData
    status: Status
    samples: tuple[float, ...] = ()
    detail: str = ""
    error: float | None = None
    resources: Resources = Resources()
    binary: str = ""
    phases: Phases = Phases()
    deterministic: bool | None = None
    conditions: Conditions | None = None
    chooser: str = ""
    predicted: float | None = None
    device: str = ""

    def __post_init__(self) -> None:
        if next(iter(self.schedule), None) != SKETCH:
            raise ValueError(f"a schedule starts with its '{SKETCH}'")
        if (self.status is Status.OK) != bool(self.samples):
            raise ValueError(f"{self.status} with {len(self.samples)} samples")

    @property
    def seconds(self) -> float:
        """Median of the samples, inf unless OK."""
        return statistics.median(self.samples) if self.samples else math.inf

    @staticmethod
    def of(
        run: str, trial: int, at: float, m: Measurement, chooser: str = "", predicted: float | None = None
    ) -> TrialRecord:
        """The record of a measurement."""
        schedule = dict(m.schedule.items)
        return TrialRecord(
            run,
            trial,
            at,
            schedule,
            m.status,
            m.samples,
            m.detail,
            m.error,
            m.resources,
            m.binary,
            m.phases,
            deterministic=m.deterministic,
            conditions=m.conditions,
            chooser=chooser,
            predicted=predicted,
            device=m.device,
        )

    def measurement(self) -> Measurement:
        """The measurement that this records."""
        return Measurement(
            Schedule.from_json(self.schedule),
            self.status,
            self.samples,
            self.detail,
            self.error,
            self.resources,
            self.binary,
            self.phases,
            deterministic=self.deterministic,
            conditions=self.conditions,
            device=self.device,
        )


class DeviceRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="device"):
    """One device of a run that has several: how it compares with the others, or why it was left out.

    Attributes:
        run: The run it belongs to.
        device: Its identifier, or its number where it has none.
        samples: Seconds of the untuned default on it, as it measured them; () where it was not asked.
        factor: What its times are multiplied by before they are recorded, so that they are those of the device that
            the others are held against. 1 where they agree.
        left_out: Why it measures no more, "" while it does.
    """

    run: str
    device: str
    samples: tuple[float, ...] = ()
    factor: float = 1.0
    left_out: str = ""


class Ratio(msgspec.Struct, frozen=True):
    """How many times faster, with a 95 % interval."""

    times: float
    low: float
    high: float


class EdgeRecord(msgspec.Struct, frozen=True):
    """A sketch that is wrong on a small odd workload; no fault of its finalist on the workload that was tuned.

    Attributes:
        workload: The odd workload.
        schedule: The schedule tried there.
        status: How it ended.
        why: In words.
    """

    workload: Workload
    schedule: ScheduleData
    status: Status
    why: str


class RaceRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="race"):
    """The final race: default, finalists and the library interleaved, seconds per round.

    Attributes:
        run: The run it belongs to.
        winner: The schedule taken: the default itself where nothing beats it.
        default: Candidate 0.
        schedules: Who raced.
        samples: Seconds per round, one row for each of `schedules`.
        library: Library call -> seconds per round.
        over_default: Winner against the default, None where the default itself failed.
        over_library: Winner against the fastest library call, None where there is none.
        tied: Finalists that the race could not tell from the winner.
        voided: Looks not counted, because the default drifted within them.
        dropped: Who ended the worker in the race or turned wrong in it, and how.
        conditions: State of the device in each look, void ones included; () where it does not tell.
        edges_checked: Schedules of the finalists' sketches that were checked on small odd workloads.
        edge_faults: Those that were wrong there.
        sanitized: Tools of compute-sanitizer that the finalists were run under.
    """

    run: str
    winner: ScheduleData
    default: ScheduleData
    schedules: tuple[ScheduleData, ...]
    samples: tuple[tuple[float, ...], ...]
    library: Mapping[str, tuple[float, ...]]
    over_default: Ratio | None
    over_library: Ratio | None
    tied: int
    voided: int = 0
    dropped: tuple[tuple[ScheduleData, str], ...] = ()
    conditions: tuple[Conditions, ...] = ()
    edges_checked: int = 0
    edge_faults: tuple[EdgeRecord, ...] = ()
    sanitized: tuple[str, ...] = ()


class GivenUpRecord(msgspec.Struct, frozen=True, tag_field="kind", tag="race_given_up"):
    """A final race that did not end.

    Attributes:
        run: The run it belongs to.
        why: What ended it.
    """

    run: str
    why: str


Record = RunRecord | TrialRecord | DeviceRecord | RaceRecord | GivenUpRecord
