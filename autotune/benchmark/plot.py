"""A benchmark as a picture (SVG): how many times faster than each library call, with intervals and marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.benchmark.result import CaseResult
from autotune.benchmark.suite import Suite
from search_spaces import registry

_EXTRA = "plots"
_ROW_INCHES = 0.32
# Calls that many times slower say nothing of how near the others are.
_MOST_TIMES = 4.0


def write_plot(results_of: Mapping[str, Sequence[CaseResult]], suites: Sequence[Suite], path: Path) -> Path:
    """Draws a panel a suite; returns `path`.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    matplotlib = registry.optional("matplotlib", _EXTRA)
    figures = registry.optional("matplotlib.figure", _EXTRA)
    rows = [[r for r in results_of[s.name] if r.rivals] for s in suites]
    heights = [max(len(found), 1) + 2 for found in rows]
    figure = figures.Figure(figsize=(8, _ROW_INCHES * sum(heights) + 1), layout="constrained")
    panels = figure.subplots(len(suites), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axes, suite, found in zip(panels, suites, rows, strict=True):
        _draw(axes, suite, found)
    # Words stay words, so that a picture can be searched, and equal figures give equal bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "autotune"}):
        figure.savefig(path, format="svg", bbox_inches="tight", metadata={"Date": None})
    return path


def _draw(axes: Any, suite: Suite, results: Sequence[CaseResult]) -> None:
    """A row a workload, a point a library call; the fastest call is the leftmost point."""
    names = list(dict.fromkeys(name for r in results for name in r.rivals))
    for number, name in enumerate(names):
        drawn = [(row, r.rivals[name].over) for row, r in enumerate(results) if name in r.rivals]
        middle = [over.times for _, over in drawn]
        spread = [[over.times - over.low for _, over in drawn], [over.high - over.times for _, over in drawn]]
        axes.errorbar(
            middle, [row for row, _ in drawn], xerr=spread, fmt="o", markersize=4, color=f"C{number}", label=name
        )
    largest = max((rival.over.times for r in results for rival in r.rivals.values()), default=1.0)
    axes.set_xlim(0.0, min(_MOST_TIMES, 1.1 * max(largest, 1.0)))
    axes.axvline(1.0, color="k", linewidth=0.8)
    if suite.mark.geometric_mean is not None:
        axes.axvline(suite.mark.geometric_mean, color="k", linewidth=0.8, linestyle=":")
    axes.set_yticks(range(len(results)), [str(r.workload) for r in results], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(f"times faster than the library, 95 % interval; above {_MOST_TIMES:g} not drawn", fontsize=8)
    axes.set_title(suite.title, fontsize=9)
    if names:
        axes.legend(fontsize=7)
