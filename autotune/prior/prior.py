"""The prior: experience of many tasks and a policy taught by it, in one file, bound to the task at hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from autotune.policy.learning import Demonstration, Learning
from autotune.policy.policy import Policy
from autotune.prior import store
from autotune.prior.bound import BoundPrior
from autotune.prior.encoding import Encoding
from autotune.prior.experience import Experience, Floats, experience_of
from autotune.prior.kinship import expected_errors, measured_errors
from autotune.prior.source import Source, matches
from autotune.recordings.recording import Recording
from search_spaces.listed import ListedSpace
from search_spaces.space import ScheduleSpace

# Share of a task's schedules that the policy imitates, and how many at least.
IMITATED, IMITATED_LEAST = 0.02, 16
LEARNING = Learning(rate=0.02, epochs=60, entropy=0.02)
# A task learns from so many others at most, the most alike.
SOURCES = 16


@dataclass(frozen=True)
class Prior:
    """What was learnt of other tasks.

    Attributes:
        experiences: One for each recording.
        errors: How wrong each of them (column) is about each (row), see `autotune.prior.kinship`.
        policy: Imitates the fastest schedules of all of them; None where it was not taught.
        about: Who trained it, when and with which versions, as words.
    """

    experiences: tuple[Experience, ...]
    errors: Floats
    policy: Policy | None = None
    about: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def train(recordings: Sequence[Recording], seed: int = 0, about: Mapping[str, str] | None = None) -> Prior:
        """Learns from recordings.

        Args:
            recordings: Of any kernels and devices.
            seed: Of everything random.
            about: As in `Prior.about`.
        """
        rng = np.random.default_rng(seed)
        experiences = tuple(experience_of(r, rng) for r in recordings)
        return Prior(experiences, measured_errors(experiences, rng), None, about or {}).taught(seed)

    @staticmethod
    def load(path: Path) -> Prior:
        """Reads what `save` wrote.

        Raises:
            BadLog: Not there, no prior, damaged or of another version.
        """
        stored = store.read(path)
        return Prior(stored.experiences, stored.errors, stored.policy, stored.about)

    def save(self, path: Path) -> None:
        """Writes it to one file.

        Raises:
            CannotWrite: It cannot be written.
        """
        store.write(path, store.Stored(self.experiences, self.errors, self.policy, self.about))

    def taught(self, seed: int = 0) -> Prior:
        """The same with a policy that imitates the fastest schedules of every experience."""
        policy, rng = Policy(seed), np.random.default_rng(seed)
        policy.clone([d for e in self.experiences for d in _demonstrations(e)], rng, LEARNING)
        return Prior(self.experiences, self.errors, policy, self.about)

    def only(self, keep: Callable[[Experience], bool]) -> Prior:
        """What would be known had only some of the experiences been made; without a policy, which was taught by all."""
        kept = [i for i, e in enumerate(self.experiences) if keep(e)]
        return Prior(tuple(self.experiences[i] for i in kept), self.errors[np.ix_(kept, kept)], None, self.about)

    def for_task(self, space: ScheduleSpace, context: Mapping[str, float], device: str = "") -> BoundPrior | None:
        """Binds it to a task.

        Args:
            space: The task's.
            context: The task as numbers.
            device: Name of what it runs on, "" where that is not known.

        Returns:
            None where no experience knows a sketch of the space.
        """
        found = [matches(space, e) for e in self.experiences]
        known = [i for i, tables in enumerate(found) if tables]
        if not known:
            return None
        related = [self.experiences[i] for i in known]
        errors = expected_errors(space, context, device, related, self.errors[np.ix_(known, known)])
        nearest = np.argsort(errors, kind="stable")[:SOURCES]
        encoding = Encoding(space)
        sources = [Source(related[i], found[known[i]], encoding) for i in nearest.tolist()]
        return BoundPrior(space, context, sources, errors[nearest], encoding, self.policy)


def _demonstrations(experience: Experience) -> list[Demonstration]:
    """The fastest schedules of a task, the faster the heavier; those of all its sketches in one space."""
    schedules = [t.schedule(row) for t in experience.tables for row in range(len(t.slowdown))]
    slowdown = np.concatenate([t.slowdown for t in experience.tables])
    count = min(int(np.isfinite(slowdown).sum()), max(IMITATED_LEAST, int(IMITATED * len(slowdown))))
    best = np.argsort(slowdown, kind="stable")[:count].tolist()
    space = ListedSpace.of(schedules, identity=experience.name)
    return [Demonstration(experience.context, space, [schedules[i] for i in best], 2.0 ** -slowdown[best])]
