"""Kernel Tuner: results files of `kernel_tuner.integration`, from which a kernel's best configuration is chosen.

Whole searches, as caches or T4 files, are written by `autotune convert` of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from autotune.exporters.base import Exporter, ExportFault, slug
from autotune.recall import Winner
from search_spaces import registry
from search_spaces.schedule import text

_EXTRA = "rivals"
_NOTE = "A problem size that is not in a file gets what Kernel Tuner takes for a good default of the device."


class KernelTunerExporter(Exporter):
    """One file a kernel: an operator in a dtype with the knobs of one sketch."""

    summary = "results files for kernel_tuner.integration"
    packages = ("kernel-tuner",)

    def missing(self) -> str | None:
        """Kernel Tuner itself."""
        if registry.available("kernel_tuner"):
            return None
        return f"Kernel Tuner is not installed; pip install 'kernel-autotune[{_EXTRA}]'"

    def why_not(self, winner: Winner) -> str | None:
        """Any schedule with knobs is a configuration."""
        return None if winner.schedule.knobs else f"{winner.schedule.sketch} has no knobs"

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """Groups by kernel."""
        files: dict[str, list[Winner]] = {}
        for winner in winners:
            files.setdefault(_file(winner), []).append(winner)
        for name, members in files.items():
            data = {
                "version_number": "1.0",
                "kernel_name": members[0].task.workload.operator,
                "tunable_parameters": list(members[0].schedule.knobs),
                "objective": "time",
                "objective_higher_is_better": False,
                "data": list(map(_row, members)),
            }
            (folder / name).write_bytes(msgspec.json.format(msgspec.json.encode(data), indent=1))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Asks Kernel Tuner for the best configuration of each device and problem size."""
        results = registry.optional("kernel_tuner.integration", _EXTRA).TuneResults
        for winner in winners:
            found = results(str(folder / _file(winner)))
            best = found.get_best_config(winner.entry.device.name, winner.task.workload.values)
            if {name: best.get(name) for name in winner.schedule.knobs} != _parameters(winner):
                raise ExportFault(f"Kernel Tuner does not find the configuration of {winner}")
        return (_NOTE,)


def _file(winner: Winner) -> str:
    workload = winner.task.workload
    return f"{slug(f'{workload.operator} {workload.dtype} {winner.schedule.sketch}')}.json"


def _parameters(winner: Winner) -> dict[str, Any]:
    return {k: text(v) if isinstance(v, tuple) else v for k, v in winner.schedule.knobs.items()}


def _row(winner: Winner) -> Mapping[str, Any]:
    """One result: parameters beside the rest, time in milliseconds, the device named as Kernel Tuner names it."""
    return {
        **_parameters(winner),
        "device_name": winner.entry.device.name.replace("-", "_").replace(" ", "_"),
        "problem_size": "x".join(map(str, winner.task.workload.values)),
        "tunable_parameters": _parameters(winner),
        "time": winner.entry.seconds * 1e3,
    }


EXPORTER = KernelTunerExporter()
