"""Sketches: one program structure for an operator, produced by one code generator, with its own knobs."""

from __future__ import annotations

import hashlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from search_spaces.space import Schedule, SketchSpace

if TYPE_CHECKING:
    from search_spaces.task import Task


class Sketch(ABC):
    """A program structure. Says itself where it does not apply, and why.

    Class attributes:
        name: `generator.file`, e.g. "triton.matmul_tiled". A sketch that yields several structures names them
            `name/0`, `name/1`, ...
        generator: The code generator that turns a schedule into a program ("triton", "tvm").
        operator: The operator it is for, None for any.
        summary: One line for `autotune space`.
        fallback: True where it is there only to give a default: left out where another sketch gives one.
    """

    name: str
    generator: str
    operator: str | None = None
    summary: str
    fallback: bool = False

    @abstractmethod
    def refuses(self, task: Task) -> str | None:
        """Why it does not apply to the operator, shape, dtype or target of `task`; None where it does."""

    @abstractmethod
    def spaces(self, task: Task) -> tuple[SketchSpace, ...]:
        """Its knobs and limits for `task`, one entry per structure. Must not use `task.space`."""

    def default(self, task: Task) -> Schedule | None:
        """A sensible untuned schedule that a search must beat; None where the sketch offers none."""
        return None

    def derived(self, task: Task, schedule: Schedule) -> Mapping[str, float]:
        """Derived quantities for the cost model: footprints, waves, intensity; the same names for every schedule."""
        return {}

    def sources(self) -> tuple[Path, ...]:
        """Files whose text defines the sketch."""
        module = sys.modules[type(self).__module__]
        return (Path(str(module.__file__)),)

    @cached_property
    def source_hash(self) -> str:
        """Changes whenever the text of one of `sources` does."""
        text = b"".join(path.read_bytes() for path in self.sources())
        return hashlib.sha256(text).hexdigest()[:16]
