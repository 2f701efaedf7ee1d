"""A benchmark as a table on the terminal, as markdown and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from autotune.benchmark.plot import write_plot
from autotune.benchmark.result import SCHEMA, CaseResult, Standing, standings
from autotune.benchmark.suite import Suite
from autotune.clock import now
from autotune.display import duration, pretty_json, titled
from autotune.environment import read_environment
from autotune.records import Ratio
from search_spaces.errors import CannotWrite, MissingDependency

HEADERS = (
    "workload",
    "tuned",
    "of roof",
    "MFU",
    "GB/s",
    "of copy",
    "same size",
    "fastest library",
    "library",
    "tuned is faster by",
    "search",
)


def write_report(
    folder: Path,
    stem: str,
    results_of: Mapping[str, Sequence[CaseResult]],
    suites: Sequence[Suite],
    absent: Mapping[str, str],
    say: Callable[[str], object],
) -> list[Path]:
    """Writes the report as markdown, JSON and, where matplotlib is here, a picture.

    Args:
        folder: Made if it is not there.
        stem: Of the files' names.
        results_of: Suite name -> its results.
        suites: Those reported.
        absent: Libraries that are not here, and why.
        say: Told in a line if there is no picture.

    Raises:
        CannotWrite: The folder cannot be written.
    """
    written = [folder / f"{stem}.md", folder / f"{stem}.json"]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written[0].write_text(as_markdown(results_of, suites))
        written[1].write_text(as_json(results_of, suites, absent) + "\n")
    except OSError as error:
        raise CannotWrite(f"{folder} cannot be written ({error.strerror})", "choose another --out") from error
    try:
        written.append(write_plot(results_of, suites, folder / f"{stem}.svg"))
    except MissingDependency as error:
        say(f"no picture: {error}")
    return written


def as_markdown(results_of: Mapping[str, Sequence[CaseResult]], suites: Sequence[Suite]) -> str:
    """Everything as markdown: a table a suite, its mark, what failed and who took no part."""
    lines = ["# Tuned kernels against libraries", ""]
    for suite in suites:
        results = results_of[suite.name]
        lines += [f"## {suite.title}", "", *_provenance(results)]
        lines += [_markdown_row(HEADERS), _markdown_row(["---"] * len(HEADERS))]
        lines += [_markdown_row(row_of(result)) for result in results if not result.failed]
        lines += ["", *(f"- {verdict(standing)}" for standing in standings(suite.mark, results))]
        lines += [f"- {line}" for line in remarks(results)]
        lines.append("")
    return "\n".join(lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _provenance(results: Sequence[CaseResult]) -> list[str]:
    """When, on what and with what it was measured, as the results say."""
    done = [r for r in results if r.device is not None and r.environment is not None]
    if not done:
        return []
    dates = sorted(r.date for r in done)
    devices = ", ".join(sorted({r.device.name for r in done if r.device is not None}))
    versions = {f"{n} {v}" for r in done if r.environment is not None for n, v in r.environment.versions.items()}
    return [f"{devices}, {dates[0]} to {dates[-1]}; {', '.join(sorted(versions))}.", ""]


def print_report(console: Console, results_of: Mapping[str, Sequence[CaseResult]], suites: Sequence[Suite]) -> None:
    """The same on the terminal."""
    for suite in suites:
        results = results_of[suite.name]
        console.print(titled(suite.title))
        table = Table(box=None, padding=(0, 2, 0, 0))
        for number, header in enumerate(HEADERS):
            table.add_column(header, justify="left" if number in (0, 7) else "right", no_wrap=True)
        for result in results:
            if not result.failed:
                table.add_row(*row_of(result))
        console.print(table)
        for standing in standings(suite.mark, results):
            console.print(verdict(standing), soft_wrap=True)
        for line in remarks(results):
            console.print(line, soft_wrap=True)
        console.print()


def row_of(result: CaseResult) -> list[str]:
    """The cells of a workload that was measured."""
    best = result.best
    library = [best[0], duration(best[1].seconds), times(best[1].over)] if best is not None else ["none", "", ""]
    return [
        str(result.workload),
        duration(result.seconds),
        f"{result.sol:.1%}",
        "" if result.mfu is None else f"{result.mfu:.1%}",
        f"{result.bandwidth / 1e9:.4g}",
        "" if result.copy_share is None else f"{result.copy_share:.1%}",
        "" if result.same_copy_share is None else f"{result.same_copy_share:.1%}",
        *library,
        "" if result.search_seconds is None else f"{result.search_seconds:.1f} s",
    ]


def in_a_line(result: CaseResult) -> str:
    """A workload that was measured, while the benchmark goes on."""
    best = result.best
    against = f"; {times(best[1].over)} against {best[0]}" if best is not None else "; no library has this operator"
    return f"{duration(result.seconds)}, {result.sol:.1%} of the roofline{against}"


def times(over: Ratio) -> str:
    """A speed-up with its 95 % interval, short."""
    return f"{over.times:.3f}x [{over.low:.3f}, {over.high:.3f}]"


def verdict(standing: Standing) -> str:
    """One part of a mark in words."""
    reached = "no figure" if standing.reached is None else f"{standing.reached:.3f}"
    without = f", {standing.without} workloads without a figure" if standing.without else ""
    return f"{'met' if standing.met else 'MISSED'}: {standing.what}, {reached} (mark {standing.wanted:g}{without})"


def remarks(results: Sequence[CaseResult]) -> list[str]:
    """What failed, which libraries took no part, and which round more than tuned kernels may."""
    lines = [f"failed: {r.asked.case.title}: {r.failed}" for r in results if r.failed]
    for r in results:
        lines += [f"left out: {name} on {r.workload}: {why}" for name, why in r.refused.items()]
        lines += [
            f"less exact: {name} on {r.workload} deviates {rival.error:.3g} times the tolerance of tuned kernels"
            for name, rival in r.rivals.items()
            if rival.error > 1.0
        ]
    return lines


def as_json(results_of: Mapping[str, Sequence[CaseResult]], suites: Sequence[Suite], absent: Mapping[str, str]) -> str:
    """The whole for machines, with raw samples, dates and environments.

    Args:
        results_of: Suite -> its results.
        suites: The suites.
        absent: Libraries that are not on this machine, and why.
    """
    data = {
        "schema": SCHEMA,
        "date": now().isoformat(timespec="seconds"),
        "environment": read_environment(),
        "absent_libraries": absent,
        "suites": [
            {
                "name": suite.name,
                "title": suite.title,
                "mark": suite.mark,
                "standings": [{**asdict(s), "met": s.met} for s in standings(suite.mark, results_of[suite.name])],
                "workloads": [{**_figures(r), "result": r} for r in results_of[suite.name]],
            }
            for suite in suites
        ],
    }
    return pretty_json(data)


def _figures(result: CaseResult) -> dict[str, object]:
    """What follows from a result, so that no reader must work it out."""
    if result.failed:
        return {"workload": result.asked.case.title, "failed": result.failed}
    best = result.best
    return {
        "workload": str(result.workload),
        "seconds": result.seconds,
        "share_of_roof": result.sol,
        "mfu": result.mfu,
        "bytes_per_second": result.bandwidth,
        "copy_bytes_per_second": result.copy_bandwidth,
        "share_of_copy": result.copy_share,
        "share_of_copy_of_same_size": result.same_copy_share,
        "fastest_library": best[0] if best else None,
        "fastest_library_seconds": best[1].seconds if best else None,
        "over_fastest_library": best[1].over if best else None,
    }
