"""The best so far, trial by trial, with the default and the library to hold it against."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.display import duration
from autotune.measurement import Measurement
from autotune.reporting.chart import FONT, Chart, Size
from autotune.reporting.figure import Detail, Figure, Table, left_out, sizes, thinned
from autotune.reporting.scale import Scale, apart
from autotune.reporting.study import Study

# Share of the trials that are drawn where they are; slower ones, and what is so many times slower than the slowest of
# best and reference lines, at the upper edge, so that improvements can be seen.
_SHARE, _SLOWEST = 0.8, 3.0


def best_so_far(study: Study, name: str, detail: Detail) -> Figure:
    """The figure; `name` is unique within the page."""
    measured = study.measured
    seconds = [study.trials.seconds[t.schedule] for _, t in measured]
    improvements = _improvements(study, measured)
    levels = _levels(study)
    references = [value for _, value, _ in levels]
    slowest = max([min(seconds), *references])
    highest = min(_SLOWEST * slowest, max(1.1 * slowest, float(np.quantile(seconds, _SHARE))))
    shown = [min(s, highest) for s in seconds]
    scale = Scale.over([*shown, *references], log=True)
    drawn = thinned(len(measured), detail.dots, [i for i, (n, _) in enumerate(measured) if n in dict(improvements)])
    beyond = sum(s > highest for s in seconds)
    pictures = []
    for size, label in zip(sizes(300.0, right=12.0, top=26.0), ("narrow", "wide"), strict=True):
        chart = Chart(size, Scale(-0.5, max(1.0, len(study.trials.all) - 0.5)), scale)
        chart.x_axis("trial", lambda v: f"{v:,.0f}")
        chart.y_axis("time of a call", duration)
        chart.dots([(measured[i][0], shown[i]) for i in drawn], "faint")
        chart.curve([*improvements, (len(study.trials.all) - 1, improvements[-1][1])], "one", steps=True)
        _draw_levels(chart, levels, size)
        description = _described(study, improvements, levels)
        pictures.append(chart.svg("Best so far over the trials", description, f"{name}-{label}"))
    edge = f" Drawn at the upper edge, as they are slower than {duration(highest)}: {beyond:,}." if beyond else ""
    failed = len(study.trials.all) - len(measured)
    caption = (
        "Each dot is a trial that ran, the line the fastest until then; lower is better. Times are held to the final "
        "race: what raced has its time there, the others are scaled alike."
    )
    caption += f" Trials that failed and have no dot: {failed:,}." if failed else ""
    return Figure(
        name=name,
        title="Best so far",
        caption=caption + edge + left_out(len(measured), len(drawn), "trials that ran"),
        table=_table(study, improvements, levels, 3 * detail.rows),
        narrow=pictures[0],
        wide=pictures[1],
    )


def _improvements(study: Study, measured: Sequence[tuple[int, Measurement]]) -> list[tuple[int, float]]:
    """Numbers and seconds of the trials that were faster than all before."""
    found: list[tuple[int, float]] = []
    for number, trial in measured:
        seconds = study.trials.seconds[trial.schedule]
        if not found or seconds < found[-1][1]:
            found.append((number, seconds))
    return found


def _levels(study: Study) -> list[tuple[str, float, str]]:
    """Name, seconds and style of the lines to hold it against, where the journal has them."""
    levels = []
    if study.default_seconds is not None:
        levels.append(("untuned default", study.default_seconds, "two"))
    if study.library is not None:
        levels.append((study.library[0], study.library[1], "three"))
    return levels


def _draw_levels(chart: Chart, levels: Sequence[tuple[str, float, str]], size: Size) -> None:
    places = [chart.y(seconds) - 5 for _, seconds, _ in levels]
    moved = apart(places, FONT + 3, size.top + FONT, size.height - size.bottom - 4)
    for (name, seconds, kind), place in zip(levels, moved, strict=True):
        chart.level(seconds, kind)
        chart.text((size.width - size.right - 2, place), f"{name} {duration(seconds)}", f"label {kind}", anchor="end")


def _described(
    study: Study, improvements: Sequence[tuple[int, float]], levels: Sequence[tuple[str, float, str]]
) -> str:
    first, last = improvements[0], improvements[-1]
    lines = "".join(f" {name} takes {duration(seconds)}." for name, seconds, _ in levels)
    return (
        f"{len(study.trials.all)} trials. The first that ran, trial {first[0]}, took {duration(first[1])}; the best, "
        f"found at trial {last[0]}, takes {duration(last[1])}.{lines}"
    )


def _table(
    study: Study,
    improvements: Sequence[tuple[int, float]],
    levels: Sequence[tuple[str, float, str]],
    most: int,
) -> Table:
    trials = study.trials.all
    rows = [(str(trials[n].schedule), str(n), duration(seconds)) for n, seconds in improvements[-most:]]
    references = [(name, "", duration(seconds)) for name, seconds, _ in levels]
    note = f"The last {most} of {len(improvements)} improvements." if len(improvements) > most else ""
    return Table(("schedule that was a new best", "trial", "time"), tuple(rows + references), note)
