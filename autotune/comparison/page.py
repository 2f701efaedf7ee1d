"""A comparison as a page: scores, curves with bands, ranks, tests and every space by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.comparison.curves import alike, fractions, quantiles
from autotune.comparison.result import Comparison
from autotune.comparison.statistics import Estimate
from autotune.comparison.trace import Floats
from autotune.reporting.chart import Chart, Size
from autotune.reporting.figure import NARROW, Figure, Table, sizes
from autotune.reporting.page import render
from autotune.reporting.scale import Scale

_COLOURS = ("one", "two", "three", "four", "five", "six")
_BASE = "random search, calculated"
# Measurements at which curves are drawn: of the whole, and of a space.
_MOST_PLACES, _FEW_PLACES = 150, 40
_ROW = 42.0


def comparison_page(found: Comparison) -> str:
    """The page of a comparison."""
    repeats = found.runs["seed"].nunique()
    spaces = len(found.yardsticks)
    by_strategy = fractions(found)
    figures = [_scores(found), _curves(found, by_strategy)]
    if len(found.ranks.mean) > 2:
        figures.append(_ranks(found))
    if found.pairs:
        figures.append(_pairs(found))
    return render(
        "compare.html.j2",
        f"{len(found.strategies)} strategies on {spaces} recorded spaces",
        subtitle=(
            f"{repeats} searches of {found.trials} measurements each, replayed; a search holds what looked fastest to "
            "it, and is judged by how fast that is in truth."
        ),
        failed=[f"{t.strategy} on {t.space}, seed {t.seed}: {t.error}" for t in found.errors],
        figures=figures,
        spaces=[_space(found, by_strategy, space, n) for n, space in enumerate(found.yardsticks)],
    )


def _kinds(found: Comparison) -> dict[str, str]:
    """Strategy -> style; from the seventh on they are thinner."""
    again = ("", " again")
    return {
        name: _COLOURS[i % len(_COLOURS)] + again[min(i // len(_COLOURS), 1)] for i, name in enumerate(found.strategies)
    }


def _keys(found: Comparison) -> tuple[tuple[str, str], ...]:
    return (*_kinds(found).items(), (_BASE, "base"))


def _scores(found: Comparison) -> Figure:
    """The table that is read first."""
    last = found.trials
    columns = ["strategy", *(f"P @{k}" for k in found.budgets[-2:]), f"95 % over repeats @{last}"]
    columns += [f"95 % over spaces @{last}", *(f"within 5 % @{k}" for k in found.budgets[-2:])]
    columns += ["measurements to 95 %", "tuner a suggestion"]
    rows = []
    for name in sorted(found.strategies, key=lambda n: -found.summary[n][f"score_{last}"].value):
        summary, arrived = found.summary[name], found.to_within[name]
        score: Estimate = summary[f"score_{last}"]
        rows.append(
            (
                name,
                *(f"{summary[f'score_{k}'].value:.3f}" for k in found.budgets[-2:]),
                _interval(score.over_repeats),
                _interval(score.over_spaces),
                *(f"{summary[f'within_{k}'].value:.0%}" for k in found.budgets[-2:]),
                f"over {last}" if math.isnan(arrived) else f"{arrived:.0f}",
                f"{1e3 * summary['overhead'].value:.2f} ms",
            )
        )
    caption = (
        "P is Willemsen's score: 0 as random search, 1 the optimum from the start, below 0 worse than random. The "
        "intervals are of what other seeds would give on these spaces, and of what other spaces of the kind would."
    )
    return Figure("scores", "Scores", caption, Table(tuple(columns), tuple(rows)))


def _interval(ends: tuple[float, float]) -> str:
    return "" if any(map(math.isnan, ends)) else f"{ends[0]:.3f} to {ends[1]:.3f}"


def _curves(found: Comparison, by_strategy: Mapping[str, Mapping[str, Floats]]) -> Figure:
    lines = {name: quantiles(list(spaces.values())) for name, spaces in by_strategy.items()}
    base = np.mean([y.recording.optimum / y.median for y in found.yardsticks.values()], axis=0)
    charts = [_drawn(found, size, lines, base, _MOST_PLACES) for size in sizes(320.0, top=26.0)]
    title = "Share of the optimum after each measurement"
    narrow, wide = (chart.svg(title, _described(found), f"curves-{i}") for i, chart in enumerate(charts))
    rows = tuple(
        (name, *(f"{found.summary[name][f'fraction_{k}'].value:.3f}" for k in found.budgets))
        for name in found.strategies
    )
    return Figure(
        name="curves",
        title=title,
        caption=(
            f"Median run, mean over {len(found.yardsticks)} spaces; the bands hold the middle half of the runs. Higher "
            "and further left is better."
        ),
        table=Table(("strategy", *(f"@{k}" for k in found.budgets)), rows),
        narrow=narrow,
        wide=wide,
        keys=_keys(found),
    )


def _drawn(
    found: Comparison,
    size: Size,
    lines: Mapping[str, tuple[Floats, Floats, Floats]],
    base: Floats,
    most: int,
) -> Chart:
    """Curves over the measurements, drawn at some of them."""
    shown = np.unique(np.linspace(0, found.trials - 1, most).round().astype(int))
    lowest = min(float(values[shown].min()) for values in (base, *(low for _, low, _ in lines.values())))
    chart = Chart(size, Scale(0.0, found.trials + 1.0), Scale(min(lowest, 0.98) - 0.01, 1.005))
    chart.x_axis("measurements", lambda v: f"{v:,.0f}")
    chart.y_axis("share of the optimum", lambda v: f"{v:.3g}")
    kinds, xs = _kinds(found), [float(i + 1) for i in shown]
    for name, (_, low, high) in lines.items():
        chart.band(xs, low[shown].tolist(), high[shown].tolist(), kinds[name])
    chart.curve(list(zip(xs, base[shown].tolist(), strict=True)), "base")
    for name, (middle, _, _) in lines.items():
        chart.curve(list(zip(xs, middle[shown].tolist(), strict=True)), kinds[name])
    return chart


def _described(found: Comparison) -> str:
    parts = [f"{name} {found.summary[name][f'fraction_{found.trials}'].value:.3f}" for name in found.strategies]
    return f"After {found.trials} measurements: {', '.join(parts)}."


def _ranks(found: Comparison) -> Figure:
    """Mean ranks; a bar joins strategies that Nemenyi's test does not tell apart (Demsar, JMLR 2006)."""
    ranks, kinds = sorted(found.ranks.mean.items(), key=lambda item: item[1]), _kinds(found)
    bars = alike([rank for _, rank in ranks], found.ranks.critical)
    height = len(ranks) + 0.5 * (len(bars) + 1)
    chart = Chart(
        Size(NARROW, 64.0 + _ROW * height, left=14.0, right=14.0, top=8.0),
        Scale(0.8, max(len(ranks) + 0.2, 1.1 + found.ranks.critical)),
        Scale(0.0, height),
    )
    chart.x_axis("mean rank, 1 is best", lambda v: f"{v:g}", [float(i + 1) for i in range(len(ranks))])
    top = height - 0.5
    chart.segment((1.0, top), (1.0 + found.ranks.critical, top), "frame")
    chart.text((chart.x(1.0), chart.y(top) - 6), f"critical difference {found.ranks.critical:.2f}", "label")
    for row, (first, last) in enumerate(bars):
        place = top - 0.5 * (row + 1)
        chart.segment((ranks[first][1] - 0.02, place), (ranks[last][1] + 0.02, place), "joined")
    for row, (name, rank) in enumerate(ranks):
        place = len(ranks) - row - 0.75
        chart.segment((rank, 0.0), (rank, place), "frame")
        chart.dots([(rank, place)], f"big {kinds[name]}")
        right = chart.x(rank) > NARROW / 2
        words = f"{name} {rank:.2f}"
        start = (chart.x(rank) + (-9 if right else 9), chart.y(place) + 4)
        chart.text(start, words, f"label {kinds[name]}", anchor="end" if right else "start")
    groups = [" and ".join(name for name, _ in ranks[first : last + 1]) for first, last in bars]
    tested = "" if math.isnan(found.ranks.p) else f" Friedman's p is {found.ranks.p:.2g}."
    return Figure(
        name="ranks",
        title="Critical differences",
        caption=(
            f"Mean ranks by P over {found.trials} measurements. Thick bars join strategies that are not told apart at "
            f"5 % by Nemenyi's test.{tested}"
        ),
        table=Table(("strategy", "mean rank"), tuple((name, f"{rank:.3f}") for name, rank in ranks)),
        narrow=chart.svg(
            "Critical differences of mean ranks",
            f"Best: {ranks[0][0]}. Not told apart: {'; '.join(groups) or 'none'}.",
            "ranks-svg",
        ),
    )


def _pairs(found: Comparison) -> Figure:
    rows = tuple(
        (
            f"{p.one} against {p.other}",
            f"{p.difference:+.3f}",
            f"{p.p:.2g}",
            f"{p.a12:.2f}",
            f"{p.better} / {p.worse} of {len(found.yardsticks)}",
        )
        for p in found.pairs
    )
    caption = (
        "Wilcoxon's signed-rank test on the means of the spaces, corrected by Holm for the pairs; A12 is the chance "
        "that a run of the first scores higher."
    )
    columns = ("pair", "P higher by", "p", "A12", "spaces better / worse")
    return Figure("pairs", "Strategies against each other", caption, Table(columns, rows))


def _space(found: Comparison, by_strategy: Mapping[str, Mapping[str, Floats]], space: str, number: int) -> Figure:
    """One of the small multiples."""
    yardstick = found.yardsticks[space]
    lines = {name: quantiles([runs[space]]) for name, runs in by_strategy.items() if space in runs}
    base = yardstick.recording.optimum / yardstick.median
    chart = _drawn(found, Size(NARROW, 220.0, top=26.0), lines, base, _FEW_PLACES)
    rows = _space_rows(found, space, list(lines))
    best = max(rows, key=lambda row: float(row[1]))[0] if rows else "none"
    return Figure(
        name=f"space-{number}",
        title=space,
        caption=(
            f"{len(yardstick.recording.seconds):,} schedules; measurements differ by "
            f"{yardstick.noise_floor:.1%} from one to the next."
        ),
        table=Table(("strategy", f"P @{found.trials}", f"share of the optimum @{found.trials}"), rows),
        narrow=chart.svg(f"Curves on {space}", f"Best by P: {best}.", f"space-{number}-svg"),
    )


def _space_rows(found: Comparison, space: str, names: Sequence[str]) -> tuple[tuple[str, str, str], ...]:
    table = found.spaces[found.spaces["space"] == space].set_index("strategy")
    score, fraction = f"score_{found.trials}", f"fraction_{found.trials}"
    scores, shares = table[score].to_dict(), table[fraction].to_dict()
    return tuple((n, f"{scores[n]:.3f}", f"{shares[n]:.3f}") for n in names)
