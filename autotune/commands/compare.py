"""`autotune compare`: strategies against each other on recorded spaces, without a device."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from autotune.comparison.files import as_json, write_files
from autotune.comparison.grid import Stopped, cells_of, run_cells
from autotune.comparison.page import comparison_page
from autotune.comparison.plots import write_plots
from autotune.comparison.progress import CellProgress
from autotune.comparison.report import print_comparison
from autotune.comparison.result import compare
from autotune.comparison.spaces import find_spaces
from autotune.devices.cpu import usable_cores
from autotune.display import output, progress_output
from autotune.number_list import number_list
from autotune.pace import WAVE
from autotune.prior.choosing import NONE
from autotune.recordings.finding import FOLDER
from autotune.reporting.page import write_page
from autotune.stopping import stop_on_signals
from search_spaces.errors import AutotuneError, ExitCode, MissingDependency


def _words(_: click.Context, __: click.Parameter, text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(p.strip() for p in text.split(",") if p.strip()))


@click.command("compare")
@click.option("--strategies", required=True, callback=_words, metavar="A,B,C", help="Names, or path/to/file.py:Name.")
@click.option(
    "--on",
    "places",
    callback=_words,
    default=str(FOLDER),
    show_default=True,
    metavar="SPACES",
    help="Recorded spaces: folders, files, or beginnings of their names, with commas.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=10, show_default=True, help="Seeds of each.")
@click.option(
    "--budgets",
    callback=number_list("such as 16,32,64"),
    default="16,32,64,100,200",
    show_default=True,
    help="Measurements to look at.",
)
@click.option(
    "--batch", type=click.IntRange(min=1), default=WAVE, show_default=True, help="Schedules asked for at a time."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The first seed.")
@click.option(
    "--prior",
    default=NONE,
    show_default=True,
    metavar="none|shipped|FILE",
    help="What strategies know that use a prior; what it has seen of a space's own device is left out.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes.  [default: one a core]")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("autotune-comparison"),
    show_default=True,
    help="Folder of the results; what it holds already is not searched again.",
)
@click.option("--json", "wants_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    strategies: tuple[str, ...],
    places: tuple[str, ...],
    repeats: int,
    budgets: tuple[int, ...],
    batch: int,
    seed: int,
    prior: str,
    jobs: int | None,
    out: Path,
    wants_json: bool,
    quiet: bool,
) -> int:
    """Compare strategies on recorded spaces; needs no device.

    \b
    autotune compare --strategies xgb,evolutionary,random --on experiments/spaces --repeats 30
    """
    if not strategies:
        raise AutotuneError("no strategy", "name some: --strategies xgb,random")
    spaces = find_spaces(places)
    cells = cells_of(strategies, spaces, range(seed, seed + repeats), trials=max(budgets), batch=batch, prior=prior)
    try:
        with stop_on_signals() as stop, CellProgress(progress_output(quiet)) as progress:
            traces = run_cells(cells, out, jobs or usable_cores(), progress.searched, stop)
    except (Stopped, KeyboardInterrupt):
        progress_output(quiet).print(f"stopped; the same command goes on from what is in {out}")
        return ExitCode.INTERRUPTED
    progress_output(quiet).print(f"scoring {len(traces)} searches")
    found = compare(cells, traces, tuple(sorted(budgets)))
    page = out / "comparison.html"
    written = [*write_files(found, cells, out), page]
    write_page(page, comparison_page(found))
    try:
        written += write_plots(found, out)
    except MissingDependency as missing:
        progress_output(quiet).print(f"no plots: {missing}")
    if wants_json:
        sys.stdout.write(as_json(found, cells) + "\n")
    else:
        print_comparison(output(), found)
        output().print(f"results  {', '.join(str(p) for p in written)}", soft_wrap=True)
    return ExitCode.OK


COMMAND = command
