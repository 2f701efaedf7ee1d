"""Importers: what other tuners wrote, as warm starts, training data and, where it is of our own sketches, entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.recordings.recording import Recording
from autotune.tuned_log import Entry
from autotune.warm_start import Proposal

UNKNOWN_DEVICE = "unknown device"
FOREIGN = "measured elsewhere, not verified here"


@dataclass(frozen=True)
class Imported:
    """What one file holds. None of it was verified here.

    Attributes:
        proposals: Configurations that a search here may start from.
        recordings: Measured configurations, to learn from.
        entries: Schedules of our own sketches with times of exactly that program; each says its source.
        left_out: What could not be taken, a line each.
    """

    proposals: tuple[Proposal, ...] = ()
    recordings: tuple[Recording, ...] = ()
    entries: tuple[Entry, ...] = ()
    left_out: tuple[str, ...] = ()


class Importer(ABC):
    """One format: a file of this folder with an instance named IMPORTER. Reading runs no code from a file.

    Class attributes:
        summary: One line, what the files are.
    """

    summary: str

    @abstractmethod
    def takes(self, path: Path, data: Any) -> bool:
        """Whether this is the format, told by what is in it.

        Args:
            path: The file; for a database its folder.
            data: The file's JSON; None for a folder.
        """

    @abstractmethod
    def read(self, path: Path, data: Any, device: str) -> Imported:
        """Takes what is there.

        Args:
            path: As for `takes`.
            data: Likewise.
            device: Name of the device where the file tells none, "" where the user does not know it.

        Raises:
            ValueError: It is damaged.
            AutotuneError: Likewise, or a package that reading needs is not installed.
        """


def foreign_recording(recording: Recording, source: str) -> Recording:
    """A recording that says that it was measured elsewhere, and by whom."""
    return replace(recording, provenance={**recording.provenance, "source": source, "foreign": FOREIGN})
