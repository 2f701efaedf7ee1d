"""Kernel Tuner's cache files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autotune.importers.base import Imported, Importer, foreign_recording
from autotune.recordings.kernel_tuner import recording_of_cache
from autotune.warm_start import proposals_of


class KernelTunerImporter(Importer):
    """Training data, and warm starts where a kernel's parameters are named like knobs of ours."""

    summary = "cache of Kernel Tuner"

    def takes(self, path: Path, data: Any) -> bool:
        """It has configurations under `cache`."""
        return isinstance(data, dict) and "cache" in data

    def read(self, path: Path, data: Any, device: str) -> Imported:
        """The recording in it; it names its device itself."""
        source = f"{self.summary} {path.name}"
        recording = foreign_recording(recording_of_cache(path, data), source)
        return Imported(proposals_of(recording, source), (recording,))


IMPORTER = KernelTunerImporter()
