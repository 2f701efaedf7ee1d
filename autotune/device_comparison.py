"""Whether the devices of a run are alike, and equally fast: they are compared by the untuned default."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scipy import stats

from autotune.device_worker import DeviceWorker
from autotune.generators.base import Artifact
from autotune.worker import Identified
from search_spaces.space import Schedule

# Devices whose medians are nearer than this are equal.
_EQUAL = 1.01
_EQUAL_P = 0.01
# One that is further off than this has something wrong with it, which a factor would hide.
_OFF = 1.1


@dataclass(frozen=True)
class DeviceNews:
    """What became of a device of several; fields as in `records.DeviceRecord`, and whether it came during the run."""

    device: str
    samples: tuple[float, ...] = ()
    factor: float = 1.0
    left_out: str = ""
    came: bool = False

    @property
    def notice(self) -> str:
        """What the user should know of it, "" for nothing."""
        if self.left_out:
            return f"device {self.device} is left out: {self.left_out}"
        corrected = f"times of device {self.device} are multiplied by {self.factor:.3f}" if self.factor != 1.0 else ""
        return corrected or (f"device {self.device} takes part from now on" if self.came else "")


_PARTS: dict[str, Callable[[Identified], str]] = {
    "model": lambda d: d.info.name,
    "arch": lambda d: d.info.arch,
    "units": lambda d: str(d.info.units),
    "memory": lambda d: f"{d.info.memory_bytes / 2**30:.0f} GiB",
    "driver": lambda d: d.info.driver,
}


def difference(first: Identified, other: Identified) -> str:
    """Why two devices cannot share a run, "" where they can."""
    pairs = {name: (part(first), part(other)) for name, part in _PARTS.items()}
    for name in dict.fromkeys((*first.traits, *other.traits)):
        pairs[name] = first.traits.get(name, "unknown"), other.traits.get(name, "unknown")
    return ", ".join(f"{name} {one} and {two}" for name, (one, two) in pairs.items() if one != two)


class Comparison:
    """Compares devices before their first candidate.

    As soon as most of them have timed the default, the middle one is the reference; who is slower than most waits for
    nobody and is waited for by nobody.

    Attributes:
        default: The untuned default and its binary, None until it was built.
        first: The reference, None until there is one.
    """

    def __init__(self) -> None:
        self.default: tuple[Schedule, Artifact] | None = None
        self.first: DeviceWorker | None = None
        self._reference: tuple[float, ...] | None = None
        self._possible = True

    def wants_default(self, workers: Sequence[DeviceWorker]) -> bool:
        """Whether the default's binary is waited for."""
        return self.default is None and self._possible and len(workers) > 1

    def give_up(self, workers: Sequence[DeviceWorker]) -> None:
        """The default fails everywhere: devices that are alike are taken for equal."""
        self._possible = False
        for worker in workers:
            worker.factor = 1.0

    def is_due(self, worker: DeviceWorker, workers: Sequence[DeviceWorker]) -> bool:
        """Whether `worker` must time the default before anything else."""
        if len(workers) == 1 and self._reference is None:
            worker.factor = 1.0
        if not self._possible:
            worker.factor = worker.factor or 1.0
        return self._possible and worker.default_samples is None and (len(workers) > 1 or worker.factor is None)

    def settle(self, workers: Sequence[DeviceWorker]) -> list[DeviceNews]:
        """Gives devices that have timed the default their factors; tells these, and who must be left out."""
        if self._reference is None:
            self.first = self._middle(workers)
            self._reference = self.first.default_samples if self.first is not None else None
        if self._reference is None:
            return []
        fresh = [w for w in workers if w.factor is None and w.default_samples is not None]
        return [self._judged(worker, self._reference) for worker in fresh]

    def _middle(self, workers: Sequence[DeviceWorker]) -> DeviceWorker | None:
        """The reference; None while too few have timed the default. Who has already measured candidates must be it."""
        settled = [w for w in workers if w.factor is not None]
        group = settled or workers
        asked = [w for w in group if w.default_samples is not None]
        if 2 * len(asked) <= len(group):
            return None
        good = sorted((w for w in asked if w.default_samples), key=lambda w: statistics.median(w.default_samples or ()))
        if good:
            return good[(len(good) - 1) // 2]
        if len(asked) == len(group):
            self.give_up(workers)
        return None

    def _judged(self, worker: DeviceWorker, reference: Sequence[float]) -> DeviceNews:
        samples = worker.default_samples
        if not samples:
            return DeviceNews(worker.label, left_out="the untuned default fails on it")
        ratio = statistics.median(reference) / statistics.median(samples)
        apart = max(ratio, 1.0 / ratio)
        if apart > _OFF:
            why = f"the untuned default takes {1.0 / ratio:.2f} times as long as on another"
            return DeviceNews(worker.label, samples, left_out=why)
        differs = apart > _EQUAL and stats.mannwhitneyu(reference, samples).pvalue < _EQUAL_P
        worker.factor = ratio if differs else 1.0
        return DeviceNews(worker.label, samples, worker.factor)
