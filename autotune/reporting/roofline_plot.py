"""Every trial under the roofline of its device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.display import duration
from autotune.reporting.chart import FONT, Chart, Size
from autotune.reporting.figure import NARROW, Detail, Figure, Table, left_out, thinned
from autotune.reporting.scale import Scale
from autotune.reporting.study import Study

# How far dots are spread sideways, as a power of ten.
_SPREAD = 0.22
_PREFIXES = (("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def roofline_plot(study: Study, name: str, detail: Detail) -> Figure | None:
    """The figure; None where the run knows neither peak nor bandwidth, or counts no operations."""
    run = study.run
    roof, measured = run.roof, study.measured
    if roof.peak is None or roof.bandwidth is None or not run.operations or not run.bytes:
        return None
    intensity = run.operations / run.bytes
    seconds = [study.trials.seconds[t.schedule] for _, t in measured]
    rates = [run.operations / s for s in seconds]
    ridge = roof.peak / roof.bandwidth
    x = Scale(min(intensity, ridge) / 12, max(intensity, ridge) * 12, log=True)
    slowest = max(min(rates), max(rates) / 1e3)
    y = Scale(slowest / 1.5, max(roof.peak, *rates) * 2.0, log=True)
    size = Size(NARROW, 300.0, top=26.0)
    chart = Chart(size, x, y)
    chart.x_axis("operations per byte", lambda v: f"{v:,.0f}" if v >= 1 else f"{v:g}", x.ticks(5))
    chart.y_axis("operations per second", si)
    chart.curve([(max(x.low, y.low / roof.bandwidth), max(y.low, x.low * roof.bandwidth)), (ridge, roof.peak)], "roof")
    chart.curve([(ridge, roof.peak), (x.high, roof.peak)], "roof")
    drawn = thinned(len(measured), detail.dots, [int(np.argmax(rates))])
    sideways = 10.0 ** np.random.default_rng(0).uniform(-_SPREAD, _SPREAD, len(drawn))
    chart.dots([(intensity * float(s), rates[i]) for i, s in zip(drawn, sideways, strict=True)], "faint")
    chart.dots([(intensity, max(rates))], "big one")
    best = min(seconds)
    share = run.floor_seconds / best
    side, step = ("end", -10) if chart.x(intensity) > NARROW / 2 else ("start", 10)
    chart.text(
        (chart.x(intensity) + step, chart.y(max(rates)) + 2 * FONT), f"best: {share:.0%}", "label one", anchor=side
    )
    chart.text((size.width - size.right, chart.y(roof.peak) - 6), f"{si(roof.peak)}FLOP/s", "label", anchor="end")
    binds = "arithmetic" if intensity > ridge else "memory"
    return Figure(
        name=name,
        title="Roofline",
        caption=(
            f"All schedules of a workload do the same work ({intensity:,.0f} operations a byte), so the dots stand in "
            f"one column and are spread sideways only to be told apart. {binds.capitalize()} binds: no schedule can be "
            f"faster than {duration(run.floor_seconds)}. Rates of {roof.model}, {roof.source}."
            + left_out(len(measured), len(drawn), "trials that ran")
        ),
        table=_fastest(study, seconds, detail.rows),
        narrow=chart.svg(
            "Roofline with every trial",
            f"{binds} binds. The best trial reaches {share:.1%} of the roofline, {si(max(rates))}FLOP/s.",
            name,
        ),
    )


def _fastest(study: Study, seconds: Sequence[float], most: int) -> Table:
    """The fastest trials with their rates."""
    run, measured = study.run, study.measured
    rows = tuple(
        (
            str(measured[i][1].schedule),
            duration(seconds[i]),
            f"{si(run.operations / seconds[i])}FLOP/s",
            f"{run.floor_seconds / seconds[i]:.1%}",
        )
        for i in np.argsort(seconds)[:most]
    )
    note = f"The {len(rows)} fastest." if len(rows) < len(seconds) else ""
    return Table(("schedule", "time", "rate", "of the roofline"), rows, note)


def si(value: float) -> str:
    """A number with a decimal prefix."""
    for prefix, scale in _PREFIXES:
        if value >= scale:
            return f"{value / scale:.3g} {prefix}"
    return f"{value:.3g} "
