"""Kernels of inference engines, launched as the engine launches them, so that its configuration files are tuned."""

from __future__ import annotations

from pathlib import Path

from search_spaces.installed_text import source_file
from search_spaces.sketches.tiles import TiledSketch
from search_spaces.space import Schedule


class EngineSketch(TiledSketch):
    """Of the engine only the kernel's own text is used; nothing of it is imported.

    Class attributes:
        package: The engine's package.
        file: Where in the package the kernel is.
    """

    package: str
    file: str

    def missing(self) -> str | None:
        """Why it does not apply where the engine is not installed; None where it is."""
        if source_file(self.package, self.file) is None:
            return f"its kernel is {self.package}'s, which is not installed here: pip install --no-deps {self.package}"
        return None

    def sources(self) -> tuple[Path, ...]:
        """The sketch's files and the engine's."""
        found = source_file(self.package, self.file)
        return (*super().sources(), *((found,) if found else ()))


def engine_tile(schedule: Schedule) -> dict[str, int]:
    """The tile of a schedule as the engines' configuration files name it, without warps and stages."""
    sizes = {f"BLOCK_SIZE_{axis}": schedule.integer(f"block_{axis.lower()}") for axis in "MNK"}
    return {**sizes, "GROUP_SIZE_M": schedule.integer("group")}
