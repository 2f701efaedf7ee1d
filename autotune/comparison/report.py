"""A comparison as tables on the terminal."""

from __future__ import annotations

import math
from collections import Counter

from rich.console import Console
from rich.table import Table

from autotune.comparison.result import Comparison
from autotune.comparison.statistics import Estimate
from autotune.display import titled


def print_comparison(console: Console, found: Comparison) -> None:
    """The tables that a reader needs first: summary, tests, what went wrong."""
    _print_summary(console, found)
    _print_end(console, found)
    if len(found.strategies) > 1:
        _print_tests(console, found)
    cut = [n for n, y in found.yardsticks.items() if y.own_budget > found.trials]
    if cut:
        console.print(
            f"P at the space's own budget stops at {found.trials} measurements on {len(cut)} of "
            f"{len(found.yardsticks)} spaces whose own budget is larger"
        )
    for strategy, failed in Counter(t.strategy for t in found.errors).items():
        first = next(t for t in found.errors if t.strategy == strategy)
        console.print(
            f"{failed} searches of {strategy} failed and are in no figure; the first on {first.space}, seed "
            f"{first.seed}: {first.error}",
            soft_wrap=True,
        )


def _print_summary(console: Console, found: Comparison) -> None:
    repeats = found.runs["seed"].nunique()
    title = f", {len(found.yardsticks)} spaces, {repeats} repeats; [95 % over repeats] {{over spaces}}"
    console.print(titled("strategies", title))
    _print_scores(console, found, "")
    console.print()
    console.print("had they ended with the final race of a tuning run:")
    _print_scores(console, found, "raced_")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("share of the optimum, median run", no_wrap=True)
    for budget in found.budgets:
        table.add_column(f"@{budget}", justify="right", no_wrap=True)
    for name in found.strategies:
        table.add_row(name, *(f"{found.summary[name][f'fraction_{k}'].value:.3f}" for k in found.budgets))
    console.print()
    console.print(table)


def _print_scores(console: Console, found: Comparison, kind: str) -> None:
    """The two largest budgets; `kind` is "raced_" for what a final race would have given, else ""."""
    shown = found.budgets[-2:]
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("strategy", no_wrap=True)
    for budget in shown:
        table.add_column(f"score P @{budget}", justify="right", no_wrap=True)
    for budget in shown:
        table.add_column(f"within 5 % @{budget}", justify="right", no_wrap=True)
    for name in found.strategies:
        summary = found.summary[name]
        scores = [_score(summary[f"{kind}score_{k}"]) for k in shown]
        table.add_row(name, *scores, *(_share(summary[f"{kind}within_{k}"]) for k in shown))
    console.print(table)


def _score(estimate: Estimate) -> str:
    return " ".join(
        [
            f"{estimate.value:.3f}",
            *(f"[{low:.3f} {high:.3f}]" for low, high in _known(estimate.over_repeats)),
            *(f"{{{least:.2f} {most:.2f}}}" for least, most in _known(estimate.over_spaces)),
        ]
    )


def _share(estimate: Estimate) -> str:
    return " ".join(
        [
            f"{estimate.value:.1%}",
            *(f"[{100 * low:.0f} {100 * high:.0f}]" for low, high in _known(estimate.over_repeats)),
            *(f"{{{100 * least:.0f} {100 * most:.0f}}}" for least, most in _known(estimate.over_spaces)),
        ]
    )


def _known(interval: tuple[float, float]) -> list[tuple[float, float]]:
    """The interval, where there is one: of one repeat or one space there is none."""
    return [] if any(map(math.isnan, interval)) else [interval]


def _print_end(console: Console, found: Comparison) -> None:
    """Own budgets, measurements to 95 %, what the tuner costs and what the final gap is made of."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("strategy", no_wrap=True)
    for name in ("P own budget", "P on the clock", "median to 95 %", "tuner/suggestion"):
        table.add_column(name, justify="right")
    for name in (f"gap @{found.trials}", "of it exploration", "selection", "misled by noise"):
        table.add_column(name, justify="right")
    for name in found.strategies:
        summary = found.summary[name]
        arrived = found.to_within[name]
        table.add_row(
            name,
            f"{summary['score_own'].value:.3f}",
            f"{summary['score_clock'].value:.3f}",
            f"over {found.trials}" if math.isnan(arrived) else f"{arrived:.0f}",
            f"{1e3 * summary['overhead'].value:.2f} ms",
            *(f"{100 * summary[part].value:.2f} %" for part in ("gap", "exploration_gap", "selection_gap")),
            f"{summary['misled'].value:.1%}",
        )
    console.print()
    console.print(table)


def _print_tests(console: Console, found: Comparison) -> None:
    ranks = found.ranks
    by_rank = sorted(ranks.mean.items(), key=lambda item: item[1])
    listed = ", ".join(f"{name} {rank:.2f}" for name, rank in by_rank)
    console.print()
    tested = "" if math.isnan(ranks.p) else f"; Friedman p {ranks.p:.2g}, critical difference {ranks.critical:.2f}"
    console.print(titled(f"mean ranks by P @{found.trials}", f": {listed}{tested}"), soft_wrap=True)
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("pair", no_wrap=True)
    for name in ("P higher by", "Wilcoxon p, Holm", "A12", "spaces better / worse"):
        table.add_column(name, justify="right")
    for pair in found.pairs:
        table.add_row(
            f"{pair.one} against {pair.other}",
            f"{pair.difference:+.3f}",
            f"{pair.p:.2g}",
            f"{pair.a12:.2f}",
            f"{pair.better} / {pair.worse} of {len(found.yardsticks)}",
        )
    console.print(table)
