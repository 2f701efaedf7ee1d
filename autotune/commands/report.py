"""`autotune report`: a page of runs that can be sent to others."""

from __future__ import annotations

from pathlib import Path

import click

from autotune.display import output
from autotune.reporting.page import write_page
from autotune.reporting.report import default_file, report
from autotune.reporting.study import studies


@click.command("report")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The HTML file.  [default: report.html in the run's folder, here for several runs]",
)
@click.option("--price-per-hour", type=click.FloatRange(min=0), metavar="PRICE", help="Of the machine, for the cost.")
def command(paths: tuple[Path, ...], out: Path | None, price_per_hour: float | None) -> None:
    """Write a page with curves, roofline, knobs, race and cost of runs; it loads nothing from the network.

    \b
    autotune report autotune-runs/FOLDER
    autotune report autotune-runs/* --out report.html --price-per-hour 3.50
    """
    file = out or default_file(paths)
    write_page(file, report([study for path in paths for study in studies(path)], price_per_hour))
    output().print(f"report  {file} ({file.stat().st_size / 1024:,.0f} KiB)", soft_wrap=True)


COMMAND = command
