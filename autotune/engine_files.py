"""Configuration files of inference engines: what their Triton kernels are launched with, by the number of rows."""

from __future__ import annotations

import functools
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import msgspec

from autotune.exporters.base import Exporter, ExportFault
from autotune.recall import Winner
from search_spaces.installed_text import function_of, source_file
from search_spaces.operators.block_fp8_matmul import BLOCK
from search_spaces.schedule import Schedule
from search_spaces.sketches.engines import EngineSketch, engine_tile

Row = dict[str, int]
# In the folder of the engine's file that reads it.
CONFIGS = "configs"
# Methods of the engines' loggers.
_LOGGING = ("debug", "info", "info_once", "warning", "warning_once")


class EngineFile(ABC):
    """The files of one of an engine's kernels.

    Class attributes:
        sketch: The kernel's.
        reader: The engine's file with the function that reads them, in its package.
        look_up: The functions of it that are needed, the one that reads them last.
    """

    sketch: EngineSketch
    reader: str
    look_up: tuple[str, ...]

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """What the engine's user must know of them."""

    @abstractmethod
    def device_name(self, winner: Winner) -> str:
        """The winner's device as the engine writes it in the name of these files."""

    @abstractmethod
    def place(self, winner: Winner) -> Path:
        """The file of a winner in the export; the problem and the device are in its name."""

    @abstractmethod
    def asked(self, winner: Winner) -> tuple[int | None, ...]:
        """What the function is given for a winner's problem."""

    @abstractmethod
    def names(self, winner: Winner, folder: Path) -> Mapping[str, Any]:
        """What the functions refer to of the engine, as if the winner's device were here and `folder` configured."""

    def looked_up(self, winner: Winner, folder: Path) -> Mapping[int, Mapping[str, Any]] | None:
        """What the installed engine's function finds for a winner's problem in the export."""
        silent = SimpleNamespace(**dict.fromkeys(_LOGGING, lambda *_, **__: None))
        standard = {"functools": functools, "json": json, "os": os, "logger": silent}
        typing = {"Any": Any, "Dict": dict, "List": list, "Tuple": tuple, "Optional": Optional}
        # Files may be looked for beside the reader's own.
        beside = {"__file__": str(folder.resolve() / Path(self.reader).name)}
        names = {**standard, **typing, **beside, **self.names(winner, folder)}
        function = function_of(self.sketch.package, self.reader, self.look_up, names)
        found: Mapping[int, Mapping[str, Any]] | None = function(*self.asked(winner))
        return found


class BlockFp8File(EngineFile):
    """Files for weights with a scale for each block of 128 x 128.

    Class attributes:
        separator: Between the numbers of a block in a file's name.
    """

    separator: str
    look_up = ("get_w8a8_block_fp8_configs",)

    def place(self, winner: Winner) -> Path:
        """The weight's shape, the device and the block are in the name."""
        n, k = winner.task.workload["N"], winner.task.workload["K"]
        block = self.separator.join([str(BLOCK)] * 2)
        named = f"N={n},K={k},device_name={self.device_name(winner)},dtype=fp8_w8a8,block_shape=[{block}].json"
        return Path(CONFIGS, named)

    def asked(self, winner: Winner) -> tuple[int | None, ...]:
        """The weight's shape and its blocks'."""
        return winner.task.workload["N"], winner.task.workload["K"], BLOCK, BLOCK


class FusedMoeFile(EngineFile):
    """Files for a mixture of experts: one configuration for both products."""

    look_up = ("get_config_file_name", "get_moe_configs")

    def name(self, winner: Winner) -> str:
        """Experts and their width on a device are in the name; neither is the model's width, nor a token's experts."""
        e, n = winner.task.workload["E"], winner.task.workload["N"]
        return f"E={e},N={n},device_name={self.device_name(winner)}.json"

    def asked(self, winner: Winner) -> tuple[int | None, ...]:
        """Experts, their width, and no dtype but the activations'."""
        return winner.task.workload["E"], winner.task.workload["N"], None


class EngineExporter(Exporter):
    """Files whose name tells the problem and the device, and that hold a configuration for each number of rows.

    The engine takes that of the nearest number, so that a file is good for the rows that were tuned and those near
    them. Only schedules of the engine's own kernel can be said; where another won, the fastest runner-up of it is.

    Class attributes:
        files: Those of each kernel.
    """

    files: tuple[EngineFile, ...]

    def missing(self) -> str | None:
        """The engine's text, without which nothing can be read again; its dependencies need not be there."""
        needed = ((f.sketch.package, file) for f in self.files for file in (f.sketch.file, f.reader))
        absent = next((found for found in needed if source_file(*found) is None), None)
        if absent is None:
            return None
        return f"{absent[0]} is not installed, or has no {absent[1]}; pip install --no-deps {absent[0]}"

    def file_of(self, winner: Winner) -> EngineFile:
        """The files of the kernel that does what the winner does."""
        return next(f for f in self.files if f.sketch.operator == winner.task.workload.operator)

    def why_not(self, winner: Winner) -> str | None:
        """The winner, or one of its runners-up, must be of the engine's kernel."""
        operator = winner.task.workload.operator
        if operator not in [f.sketch.operator for f in self.files]:
            wanted = " and ".join(str(f.sketch.operator) for f in self.files)
            return f"the engine has configuration files for {wanted}, not for {operator}"
        if self.expressible(winner) is None:
            return f"it was not tuned on the engine's kernel; tune it with --sketch {self.file_of(winner).sketch.name}"
        return None

    def expressible(self, winner: Winner) -> Schedule | None:
        """The winner's schedule, or the fastest runner-up's, that is of the engine's kernel."""
        names = {f.sketch.name for f in self.files}
        others = (Schedule.from_json(other.schedule) for other in winner.entry.runners_up)
        fitting = (s for s in (winner.schedule, *others) if s.sketch in names)
        return next((s for s in fitting if winner.task.space.why_not(s) is None), None)

    def row(self, winner: Winner) -> Row:
        """The configuration of a winner."""
        schedule = self.expressible(winner)
        assert schedule is not None
        return {**engine_tile(schedule), **{n: schedule.integer(n) for n in ("num_warps", "num_stages")}}

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """One file a name; what a name cannot tell apart must not be in one log."""
        files: dict[Path, dict[str, Row]] = {}
        written: dict[tuple[Path, int], Winner] = {}
        for winner in sorted(winners, key=lambda w: w.task.workload["M"]):
            place, count = self.file_of(winner).place(winner), winner.task.workload["M"]
            other = written.setdefault((place, count), winner)
            if self.row(other) != self.row(winner):
                raise ExportFault(f"{other} and {winner} are one to the engine, M={count} of {place.name}: export one")
            files.setdefault(place, {})[str(count)] = self.row(winner)
        for place, rows in files.items():
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=4))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Has the engine's own function look every configuration up."""
        for winner in winners:
            found = self.file_of(winner).looked_up(winner, folder)
            if found is None or dict(found.get(winner.task.workload["M"], {})) != self.row(winner):
                raise ExportFault(f"the engine does not find {winner} in its file")
        others = [w for w in winners if self.expressible(w) != w.schedule]
        notes = dict.fromkeys(note for w in winners for note in self.file_of(w).notes)
        return (*notes, *(f"{w}: not the winner but a runner-up is exported, {self.expressible(w)}" for w in others))
