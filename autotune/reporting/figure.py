"""A figure of a page: a chart in one or two widths, what it says in words, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.reporting.chart import Size

# Widths of the picture in units that are about a pixel where it is shown: a phone or a card, and a whole page.
NARROW, WIDE = 360.0, 960.0
# Tasks of which everything is drawn.
_FEW_TASKS = 2


@dataclass(frozen=True)
class Detail:
    """How much of each task is drawn and listed; each figure says what it leaves out.

    Attributes:
        dots: Of one kind in a chart at most.
        lines: Trials drawn through their knobs, besides the fastest.
        rows: Of a table of the fastest trials.
        sketches: Whose space is drawn.
    """

    dots: int = 3000
    lines: int = 120
    rows: int = 20
    sketches: int = 3

    @staticmethod
    def among(tasks: int) -> Detail:
        """Less of each where there are many, so that the page stays small."""
        share = min(1.0, _FEW_TASKS / tasks)
        whole = Detail()
        return Detail(
            dots=max(60, round(share * whole.dots)),
            lines=max(8, round(share * whole.lines)),
            rows=max(5, round(share * whole.rows)),
            sketches=whole.sketches if share == 1.0 else 1,
        )


@dataclass(frozen=True)
class Table:
    """A figure's numbers.

    Attributes:
        columns: Names; all but the first are numbers, set to the right.
        rows: Texts, as many as there are columns in each.
        note: What was left out, "" for nothing.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: Unique within its page.
        title: Heading.
        caption: How to read it, and what was left out.
        table: Its numbers.
        narrow: SVG for a card or a phone; "" where words are all there is.
        wide: SVG for a whole page's width, "" for a card.
        keys: What each style of line stands for: names and styles.
    """

    name: str
    title: str
    caption: str
    table: Table
    narrow: str = ""
    wide: str = ""
    keys: tuple[tuple[str, str], ...] = ()


def sizes(height: float, **margins: float) -> tuple[Size, Size]:
    """Sizes of the narrow and the wide picture."""
    return Size(NARROW, height, **margins), Size(WIDE, height * 1.1, **margins)


def thinned(count: int, most: int, always: Sequence[int] = ()) -> list[int]:
    """Places of what is drawn of `count` things, in order: all, or `always` and a random sample, always the same."""
    if count <= most:
        return list(range(count))
    drawn = np.random.default_rng(0).choice(count, most, replace=False)
    return sorted({*map(int, drawn), *always})


def left_out(count: int, drawn: int, what: str) -> str:
    """A sentence that says how many are drawn, "" where all are."""
    return f" Of {count:,} {what} {drawn:,} are drawn, chosen at random." if drawn < count else ""
