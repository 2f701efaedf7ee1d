"""T4 files, the results format of the auto-tuning community."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.importers.base import Imported, Importer, foreign_recording
from autotune.recordings.t4 import recording_of_t4
from autotune.warm_start import proposals_of


class T4Importer(Importer):
    """Training data, and warm starts where a kernel's parameters are named like knobs of ours."""

    summary = "T4 file"

    def takes(self, path: Path, data: Any) -> bool:
        """It has `results`."""
        return isinstance(data, dict) and "results" in data

    def read(self, path: Path, data: Any, device: str) -> Imported:
        """The recording in it; the format names no device, so the file's name or the user does."""
        source = f"{self.summary} {path.name}"
        found = recording_of_t4(path, data)
        recording = foreign_recording(replace(found, device=device or found.device), source)
        return Imported(proposals_of(recording, source), (recording,))


IMPORTER = T4Importer()
