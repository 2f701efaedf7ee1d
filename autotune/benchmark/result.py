"""What a benchmark found: a record a workload, and how a suite stands to its mark."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from autotune.benchmark.suite import Case, Mark
from autotune.devices.base import DeviceInfo
from autotune.devices.telemetry import Conditions
from autotune.environment import Environment
from autotune.records import Ratio, ScheduleData
from search_spaces.operator import Workload

SCHEMA = "bench/1"


class Asked(msgspec.Struct, frozen=True):
    """What a case is measured under; a result of other terms is no result of this benchmark.

    Attributes:
        case: The workload with its mark.
        target: As `str(Target)`.
        device: Name of the device at hand.
        seconds: Time limit of its search.
        trials: Trials at most.
        strategy: What searched.
        seed: Of everything random.
        cold: Whether caches are flushed before every sample.
        libraries: Who was asked to take part.
        logs: Tuned logs that schedules were taken from.
    """

    case: Case
    target: str
    device: str
    seconds: float
    trials: int
    strategy: str
    seed: int
    cold: bool
    libraries: tuple[str, ...]
    logs: tuple[str, ...]


class Rival(msgspec.Struct, frozen=True):
    """A library call in the contest.

    Attributes:
        samples: Seconds per round.
        error: Deviation from the reference in units of the tolerance that binds tuned kernels.
        over: How many times faster than it the tuned kernel is, with a paired 95 % interval.
    """

    samples: tuple[float, ...]
    error: float
    over: Ratio

    @property
    def seconds(self) -> float:
        """Median."""
        return statistics.median(self.samples)


class CaseResult(msgspec.Struct, frozen=True):
    """One workload measured, or why it was not.

    Attributes:
        asked: The terms.
        date: UTC, ISO 8601.
        failed: Why there is no measurement, "" where there is one.
        workload: With all axes and dtype.
        device: What was measured on.
        environment: The software.
        schedule: The tuned one.
        source: Where it is from: "tuned here", or the path of a tuned log.
        search_seconds: Of its search; None where it comes from a log.
        search_trials: Trials behind it.
        samples: Its seconds per round.
        error: Its deviation from the reference in units of the tolerance.
        rivals: Library calls by name.
        refused: Library calls that took no part, and why.
        operations: Arithmetic operations of the workload.
        bytes: Bytes it must move.
        floor_seconds: The roofline's bound on this device.
        peak: Operations per second of the device in the dtype of the arithmetic, None where that is not known.
        copy_samples: Seconds per round of a copy in the device's memory.
        copied: Bytes that this copy reads and writes.
        same_copy_samples: Seconds per round of a copy that reads and writes as many bytes as the workload must move.
        conditions: State of the device in the rounds.
    """

    asked: Asked
    date: str
    failed: str = ""
    workload: Workload | None = None
    device: DeviceInfo | None = None
    environment: Environment | None = None
    schedule: ScheduleData = msgspec.field(default_factory=dict)
    source: str = ""
    search_seconds: float | None = None
    search_trials: int = 0
    samples: tuple[float, ...] = ()
    error: float | None = None
    rivals: Mapping[str, Rival] = msgspec.field(default_factory=dict)
    refused: Mapping[str, str] = msgspec.field(default_factory=dict)
    operations: float = 0.0
    bytes: float = 0.0
    floor_seconds: float = 0.0
    peak: float | None = None
    copy_samples: tuple[float, ...] = ()
    copied: float = 0.0
    same_copy_samples: tuple[float, ...] = ()
    conditions: Conditions | None = None

    @property
    def seconds(self) -> float:
        """The tuned kernel's median."""
        return statistics.median(self.samples)

    @property
    def best(self) -> tuple[str, Rival] | None:
        """The fastest library call; None where there is none."""
        return min(self.rivals.items(), key=lambda item: item[1].seconds, default=None)

    @property
    def sol(self) -> float:
        """Share of the speed of light: of the roofline's bound."""
        return self.floor_seconds / self.seconds

    @property
    def mfu(self) -> float | None:
        """Share of the peak arithmetic, as if the workload were bound by it."""
        return self.operations / self.seconds / self.peak if self.peak else None

    @property
    def bandwidth(self) -> float:
        """Bytes per second, every input read and every output written once."""
        return self.bytes / self.seconds

    @property
    def copy_bandwidth(self) -> float | None:
        """Bytes per second of the copy; None where it took no part."""
        return self.copied / statistics.median(self.copy_samples) if self.copy_samples else None

    @property
    def copy_share(self) -> float | None:
        """The tuned kernel's bandwidth in units of the copy's, where the mark counts that."""
        speed = self.copy_bandwidth
        counts = self.asked.case.mark.counts_copy(self.bytes)
        return self.bandwidth / speed if speed is not None and counts else None

    @property
    def same_copy_share(self) -> float | None:
        """Time of a copy of as many bytes over the tuned kernel's; None where that copy took no part."""
        return statistics.median(self.same_copy_samples) / self.seconds if self.same_copy_samples else None


class Standing(msgspec.Struct, frozen=True):
    """One part of a mark, and what was reached.

    Attributes:
        what: In words.
        wanted: The mark.
        reached: The figure; None where there is no measurement that it could be made of.
        without: Workloads that have no figure: they failed, or no library took part.
    """

    what: str
    wanted: float
    reached: float | None
    without: int

    @property
    def met(self) -> bool:
        """Whether all workloads have a figure and it is reached."""
        return self.reached is not None and not self.without and self.reached >= self.wanted


def standings(mark: Mark, results: Sequence[CaseResult]) -> list[Standing]:
    """How the results of a suite stand to its mark."""
    ratios = [r.best[1].over.times for r in results if r.best is not None]
    without = len(results) - len(ratios)
    found = []
    if mark.least is not None:
        found.append(Standing("slowest against its fastest library", mark.least, min(ratios, default=None), without))
    if mark.geometric_mean is not None:
        mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
        found.append(Standing("geometric mean over the fastest libraries", mark.geometric_mean, mean, without))
    if mark.copy_share is not None:
        shares = [r.copy_share for r in results if r.copy_share is not None]
        failed = sum(bool(r.failed) for r in results)
        found.append(Standing("least share of the copy's speed", mark.copy_share, min(shares, default=None), failed))
    return found


class Results:
    """Results of a benchmark's folder, a file a workload, so that an interrupted one goes on where it was.

    Args:
        folder: The benchmark's folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "cases"

    def path(self, case: Case) -> Path:
        """Where the result of a case lies."""
        return self._folder / f"{case.suite}--{case.slug}.json"

    def known(self, asked: Asked) -> CaseResult | None:
        """The result measured under these terms; None where there is none, it failed, or it cannot be read."""
        try:
            found = msgspec.json.decode(self.path(asked.case).read_bytes(), type=CaseResult)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.asked == asked and not found.failed else None

    def keep(self, result: CaseResult) -> None:
        """Writes a result, whole or not at all."""
        path = self.path(result.asked.case)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
        part.replace(path)
