"""Knobs and the limits that they must keep together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from search_spaces.schedule import Value


class Family(StrEnum):
    """What a knob decides, by the names that users look for."""

    TILE_SIZES = "tile sizes"
    VECTOR_WIDTH = "vector width"
    LOOP_ORDER = "loop order"
    SHARED_MEMORY = "shared-memory allocation"
    WARPS = "warps"
    REGISTERS = "registers"
    UNROLLING = "unrolling"
    PERSISTENCE = "persistence"
    PARALLELISM = "parallelism"


@dataclass(frozen=True)
class Knob:
    """One decision of a sketch.

    Attributes:
        name: Unique within its sketch.
        family: What it decides.
        values: The candidates, at least one, all of one type.
        runtime: True where changing it needs no new binary.
    """

    name: str
    family: Family
    values: tuple[Value, ...]
    runtime: bool = False

    def __post_init__(self) -> None:
        if not self.values or len(set(self.values)) != len(self.values):
            raise ValueError(f"knob {self.name}: values must be present and distinct, got {self.values}")


@dataclass(frozen=True)
class Constraint:
    """A limit that a schedule must keep, asked as soon as the knobs it names are decided.

    Attributes:
        reason: What a schedule that breaks it does wrong, as shown to users ("needs more shared memory than ...").
        knobs: Names whose values `holds` takes, in this order.
        holds: Whether the values keep the limit.
    """

    reason: str
    knobs: tuple[str, ...]
    holds: Callable[..., bool]
