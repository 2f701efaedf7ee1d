"""Configuration files of inference engines: what their Triton kernels are launched with, by the number of rows."""

from __future__ import annotations

import functools
import json
import logging
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from autotune.exporters.base import Exporter, ExportFault
from autotune.recall import Winner
from search_spaces.installed_text import function_of, source_file
from search_spaces.operators.block_fp8_matmul import BLOCK
from search_spaces.schedule import Schedule
from search_spaces.sketches.block_fp8 import EngineBlockFp8, engine_tile

Row = dict[str, int]
# In the folder of the engine's file that reads it.
CONFIGS = "configs"
_LOOK_UP = "get_w8a8_block_fp8_configs"


class EngineExporter(Exporter):
    """Files whose name tells the problem and the device, and that hold a configuration for each number of rows.

    The engine takes that of the nearest number, so that a file is good for the rows that were tuned and those near
    them. Only schedules of the engine's own kernel can be said; where another won, the fastest runner-up of it is.

    Class attributes:
        sketches: Sketches of the engine's kernels.
        separator: Between the numbers of a block in a file's name.
    """

    sketches: tuple[EngineBlockFp8, ...]
    separator: str

    def missing(self) -> str | None:
        """The engine's text, without which nothing can be read again; its dependencies need not be there."""
        absent = next((s for s in self.sketches if source_file(s.package, s.file) is None), None)
        if absent is None:
            return None
        return f"{absent.package} is not installed, or has no {absent.file}; pip install --no-deps {absent.package}"

    def why_not(self, winner: Winner) -> str | None:
        """The winner, or one of its runners-up, must be of the engine's kernel."""
        kernel = next((s for s in self.sketches if s.operator == winner.task.workload.operator), None)
        if kernel is None:
            wanted = " or ".join(str(s.operator) for s in self.sketches)
            return f"the engine has a configuration file for {wanted}, not for {winner.task.workload.operator}"
        if self.expressible(winner) is None:
            return f"it was not tuned on the engine's kernel; tune it with --sketch {kernel.name}"
        return None

    def expressible(self, winner: Winner) -> Schedule | None:
        """The winner's schedule, or the fastest runner-up's, that is of the engine's kernel."""
        names = {sketch.name for sketch in self.sketches}
        others = (Schedule.from_json(other.schedule) for other in winner.entry.runners_up)
        fitting = (s for s in (winner.schedule, *others) if s.sketch in names)
        return next((s for s in fitting if winner.task.space.why_not(s) is None), None)

    def row(self, winner: Winner) -> Row:
        """The configuration of a winner."""
        schedule = self.expressible(winner)
        assert schedule is not None
        return {**engine_tile(schedule), **{n: schedule.integer(n) for n in ("num_warps", "num_stages")}}

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """One file a weight's shape, block and device."""
        files: dict[Path, dict[str, Row]] = {}
        for winner in sorted(winners, key=lambda w: w.task.workload["M"]):
            rows = files.setdefault(self.place(winner), {})
            if rows.setdefault(str(winner.task.workload["M"]), self.row(winner)) != self.row(winner):
                raise ExportFault(f"{winner}: the log holds two of it in different dtypes; export one of them")
        for place, rows in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=4))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Has the engine's own function look every configuration up."""
        for winner in winners:
            found = self.looked_up(winner, folder)
            if found is None or dict(found.get(winner.task.workload["M"], {})) != self.row(winner):
                raise ExportFault(f"the engine does not find {winner} in its file")
        others = [w for w in winners if self.expressible(w) != w.schedule]
        return (
            *self.notes,
            *(f"{w}: not the winner but a runner-up is exported, {self.expressible(w)}" for w in others),
        )

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What the engine's user must know of every export."""

    @abstractmethod
    def device_name(self, winner: Winner) -> str:
        """The winner's device as the engine writes it in a file's name."""

    @abstractmethod
    def names(self, winner: Winner) -> Mapping[str, Any]:
        """What the engine's function refers to beside the standard library, as if the winner's device were here."""

    def place(self, winner: Winner) -> Path:
        """The file of a winner in the export; the weight's shape, the device and the block are in the name."""
        n, k = winner.task.workload["N"], winner.task.workload["K"]
        block = self.separator.join([str(BLOCK)] * 2)
        named = f"N={n},K={k},device_name={self.device_name(winner)},dtype=fp8_w8a8,block_shape=[{block}].json"
        return Path(CONFIGS, named)

    def looked_up(self, winner: Winner, folder: Path) -> Mapping[int, Mapping[str, Any]] | None:
        """What the installed engine's function finds for a winner's problem, the export in its package's place."""
        (kernel,) = self.sketches
        names = {
            # It looks for files beside its own.
            "__file__": str(folder.resolve() / Path(kernel.file).name),
            "logger": logging.getLogger(__name__),
            **{"functools": functools, "json": json, "os": os, "Any": Any},
            **self.names(winner),
        }
        function = function_of(kernel.package, kernel.file, (_LOOK_UP,), names)
        shape = winner.task.workload["N"], winner.task.workload["K"]
        found: Mapping[int, Mapping[str, Any]] | None = function(*shape, BLOCK, BLOCK)
        return found
