"""A comparison as pictures for print (SVG, PDF): best-so-far over all spaces and by space, critical differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from autotune.comparison.curves import BAND, alike, fractions
from autotune.comparison.result import Comparison
from autotune.comparison.trace import Floats
from search_spaces import registry

_EXTRA = "plots"
_COLUMNS = 4


def write_plots(found: Comparison, folder: Path) -> list[Path]:
    """Writes `curves`, `spaces` and, for three strategies or more, `ranks`, as SVG and as PDF; returns their paths.

    Raises:
        MissingDependency: matplotlib is not installed.
    """
    matplotlib = registry.optional("matplotlib", _EXTRA)
    figures = registry.optional("matplotlib.figure", _EXTRA)
    drawn = {"curves": _curves(found, figures), "spaces": _by_space(found, figures)}
    if len(found.ranks.mean) > 2:
        drawn["ranks"] = _ranks(found, figures)
    written = []
    # Words stay words, so that a picture can be searched, and equal figures give equal bytes.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "autotune", "pdf.fonttype": 42}):
        for name, figure in drawn.items():
            for form, undated in (("svg", {"Date": None}), ("pdf", {"CreationDate": None})):
                path = folder / f"{name}.{form}"
                figure.savefig(path, format=form, bbox_inches="tight", metadata=undated)
                written.append(path)
    return written


def _curves(found: Comparison, figures: Any) -> Any:
    """Mean over the spaces of the median run, and of the quartiles."""
    figure = figures.Figure(figsize=(7, 4.5))
    axes = figure.add_subplot()
    for number, (name, spaces) in enumerate(fractions(found).items()):
        quantiles = [np.mean([np.quantile(runs, q, axis=0) for runs in spaces.values()], axis=0) for q in (0.5, *BAND)]
        _draw(axes, name, number, quantiles)
    _baseline(axes, np.mean([y.recording.optimum / y.median for y in found.yardsticks.values()], axis=0))
    axes.set(xlabel="measurements", ylabel="share of the optimum, median run (band: quartiles)")
    axes.set_title(f"{len(found.yardsticks)} spaces")
    axes.legend(loc="lower right")
    return figure


def _by_space(found: Comparison, figures: Any) -> Any:
    """The same for each space."""
    columns = min(_COLUMNS, len(found.yardsticks))
    rows = -(-len(found.yardsticks) // columns)
    figure = figures.Figure(figsize=(3.2 * columns, 2.6 * rows), layout="constrained")
    by_strategy = fractions(found)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for axes, (space, yardstick) in zip(grid.flat, found.yardsticks.items(), strict=False):
        for number, (name, spaces) in enumerate(by_strategy.items()):
            if space in spaces:
                _draw(axes, name, number, [np.quantile(spaces[space], q, axis=0) for q in (0.5, *BAND)])
        _baseline(axes, yardstick.recording.optimum / yardstick.median)
        axes.set_title(space, fontsize=8)
    for axes in grid.flat[len(found.yardsticks) :]:
        axes.set_visible(False)
    figure.legend(*grid.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


def _draw(axes: Any, name: str, number: int, quantiles: list[Floats]) -> None:
    middle, low, high = quantiles
    measurements = np.arange(1, len(middle) + 1)
    axes.fill_between(measurements, low, high, color=f"C{number}", alpha=0.15, linewidth=0)
    axes.plot(measurements, middle, color=f"C{number}", label=name)


def _baseline(axes: Any, fraction: Floats) -> None:
    axes.plot(np.arange(1, len(fraction) + 1), fraction, "k:", label="random search, calculated")


def _ranks(found: Comparison, figures: Any) -> Any:
    """Mean ranks on a line; a bar joins strategies that Nemenyi's test does not tell apart (Demsar, JMLR 2006)."""
    ranks = sorted(found.ranks.mean.items(), key=lambda item: item[1])
    bars = alike([rank for _, rank in ranks], found.ranks.critical)
    figure = figures.Figure(figsize=(7, 1.2 + 0.25 * len(ranks) + 0.12 * len(bars)))
    axes = figure.add_subplot()
    for row, (name, rank) in enumerate(ranks):
        depth = -1.0 - 0.25 * len(bars) - 0.6 * row
        axes.plot([rank, rank, len(ranks) + 0.2], [0.0, depth, depth], color="0.5", linewidth=0.8)
        axes.text(len(ranks) + 0.25, depth, f"{name} ({rank:.2f})", va="center")
    for row, (first, last) in enumerate(bars):
        axes.plot([ranks[first][1] - 0.03, ranks[last][1] + 0.03], [-0.5 - 0.25 * row] * 2, "k", linewidth=3)
    end = 1 + found.ranks.critical
    axes.plot([1, end], [0.6, 0.6], "k|-")
    axes.text(end + 0.05, 0.6, f"critical difference {found.ranks.critical:.2f}", va="center")
    axes.axhline(0.0, color="k", linewidth=0.8)
    axes.set(xlim=(0.8, len(ranks) + 0.2), yticks=[], xticks=range(1, len(ranks) + 1))
    axes.xaxis.tick_top()
    axes.set_title(f"mean rank by score P over {found.trials} measurements; bars: not told apart at 5 %", fontsize=9)
    axes.spines[:].set_visible(False)
    return figure
