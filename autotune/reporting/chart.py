"""Charts as inline SVG: colours come from the page's style sheet, so that they follow dark mode and print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from autotune.reporting.scale import Scale

Point = tuple[float, float]
Label = Callable[[float], str]
FONT = 12.0
# Advance of an average bold letter, in units of the font's size.
_LETTER = 0.62


@dataclass(frozen=True)
class Size:
    """A picture's width and height, and the margins of its plot: left, right, top, bottom."""

    width: float
    height: float
    left: float = 58.0
    right: float = 12.0
    top: float = 12.0
    bottom: float = 44.0


class Chart:
    """A picture that is drawn element by element.

    Args:
        size: Of the picture.
        x: Scale of the horizontal axis; it is placed within the margins.
        y: Scale of the vertical axis.

    Attributes:
        size: As given.
        x: The placed scale.
        y: The placed scale.
    """

    def __init__(self, size: Size, x: Scale, y: Scale) -> None:
        self.size = size
        self.x = x.placed(size.left, size.width - size.right)
        self.y = y.placed(size.height - size.bottom, size.top)
        self._parts: list[str] = []

    def x_axis(self, title: str, label: Label, ticks: Sequence[float] | None = None) -> None:
        """Ticks, grid and title below the plot."""
        bottom, top = self.size.height - self.size.bottom, self.size.top
        most = max(3, int((self.x.end - self.x.start) / 64))
        shown = self.x.ticks(most) if ticks is None else ticks
        for value in shown:
            self._line((self.x(value), top), (self.x(value), bottom), "grid")
            self.text((self.x(value), bottom + FONT + 4), label(value), "tick", anchor="middle")
        middle = (self.x.start + self.x.end) / 2
        self.text((middle, self.size.height - 6), title, "axis", anchor="middle")

    def y_axis(self, title: str, label: Label, ticks: Sequence[float] | None = None) -> None:
        """Ticks, grid and title left of the plot; the title stands upright above it."""
        right = self.size.width - self.size.right
        most = max(3, int((self.y.start - self.y.end) / 40))
        for value in self.y.ticks(most) if ticks is None else ticks:
            self._line((self.size.left, self.y(value)), (right, self.y(value)), "grid")
            self.text((self.size.left - 6, self.y(value) + FONT / 3), label(value), "tick", anchor="end")
        self.text((4, FONT), title, "axis")

    def dots(self, points: Iterable[Point], kind: str) -> None:
        """Round dots at values; one element for all of them, so that thousands stay small."""
        path = "".join(f"M{self.x(x):.1f} {self.y(y):.1f}h0" for x, y in points)
        if path:
            self._parts.append(f'<path class="dot {kind}" d="{path}"/>')

    def curve(self, points: Sequence[Point], kind: str, *, steps: bool = False) -> None:
        """A line through values, or a staircase that holds each value until the next."""
        if not points:
            return
        placed = [(self.x(x), self.y(y)) for x, y in points]
        path = f"M{placed[0][0]:.1f} {placed[0][1]:.1f}"
        for x, y in placed[1:]:
            path += f"H{x:.1f}V{y:.1f}" if steps else f"L{x:.1f} {y:.1f}"
        self._parts.append(f'<path class="line {kind}" d="{path}"/>')

    def band(self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], kind: str) -> None:
        """The area between two lines."""
        forth = [(self.x(x), self.y(y)) for x, y in zip(xs, high, strict=True)]
        back = [(self.x(x), self.y(y)) for x, y in zip(xs, low, strict=True)]
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in [*forth, *reversed(back)])
        self._parts.append(f'<path class="band {kind}" d="M{path}Z"/>')

    def level(self, y: float, kind: str) -> None:
        """A horizontal line over the whole plot."""
        self._line((self.size.left, self.y(y)), (self.size.width - self.size.right, self.y(y)), f"line {kind}")

    def upright(self, x: float, kind: str) -> None:
        """A vertical line over the whole plot."""
        self._line((self.x(x), self.size.top), (self.x(x), self.size.height - self.size.bottom), f"line {kind}")

    def segment(self, one: Point, other: Point, kind: str) -> None:
        """A line between two values."""
        self._line((self.x(one[0]), self.y(one[1])), (self.x(other[0]), self.y(other[1])), f"line {kind}")

    def bar(self, x: float, y: float, thickness: float, kind: str) -> None:
        """A horizontal bar from the start of the axis to a value."""
        start, end = self.x.start, self.x(x)
        place = self.y(y) - thickness / 2
        self._parts.append(
            f'<rect class="bar {kind}" x="{start:.1f}" y="{place:.1f}" width="{max(0.5, end - start):.1f}" '
            f'height="{thickness:.1f}" rx="2"/>'
        )

    def text(self, place: Point, words: str, kind: str = "", *, anchor: str = "start") -> None:
        """Words at a place of the picture (not at a value)."""
        self._parts.append(
            f'<text class="{kind}" x="{place[0]:.1f}" y="{place[1]:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
        )

    def _line(self, one: Point, other: Point, kind: str) -> None:
        self._parts.append(f'<path class="{kind}" d="M{one[0]:.1f} {one[1]:.1f}L{other[0]:.1f} {other[1]:.1f}"/>')

    def svg(self, title: str, description: str, name: str) -> str:
        """The picture.

        Args:
            title: What it shows, for those who cannot see it.
            description: What is to be seen in it, likewise.
            name: Unique within the page.
        """
        width, height = self.size.width, self.size.height
        return (
            f'<svg role="img" viewBox="0 0 {width:g} {height:g}" aria-labelledby="{name}-t {name}-d">'
            f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(description)}</desc>'
            f"{''.join(self._parts)}</svg>"
        )


def text_width(words: str) -> float:
    """About how wide words are drawn."""
    return _LETTER * FONT * len(words)


def shortened(words: str, width: float) -> str:
    """Words that fit into a width, their middle left out where they do not."""
    most = max(3, int(width / (_LETTER * FONT)))
    if len(words) <= most:
        return words
    return f"{words[: (most - 1) // 2]}…{words[len(words) - most // 2 :]}"
