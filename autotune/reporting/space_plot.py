"""What was tried of the space: parallel coordinates, an axis a knob, a line a trial."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.display import duration
from autotune.measurement import Measurement
from autotune.reporting.chart import FONT, Chart, Size, shortened
from autotune.reporting.figure import NARROW, WIDE, Detail, Figure, Table, thinned
from autotune.reporting.scale import Scale
from autotune.reporting.study import Study
from search_spaces.schedule import Value, text

# Lines of the fastest, besides those chosen at random.
_FASTEST = 12
_MOST_TICKS = 9
_ROW = 54.0


def space_plots(study: Study, name: str, detail: Detail) -> list[Figure]:
    """A figure for each of the sketches with the most trials that ran."""
    by_sketch: dict[str, list[Measurement]] = {}
    for _, trial in study.measured:
        by_sketch.setdefault(trial.schedule.sketch, []).append(trial)
    largest = sorted(by_sketch.items(), key=lambda item: -len(item[1]))[: detail.sketches]
    return [
        _space_plot(study, sketch, trials, f"{name}-{number}", detail)
        for number, (sketch, trials) in enumerate(largest)
        if trials[0].schedule.knobs
    ]


def _space_plot(study: Study, sketch: str, trials: Sequence[Measurement], name: str, detail: Detail) -> Figure:
    seconds = [study.trials.seconds[t.schedule] for t in trials]
    order = [int(i) for i in np.argsort(seconds, kind="stable")]
    fastest = order[: min(_FASTEST, max(1, len(order) // 4))]
    drawn = thinned(len(trials), detail.lines, fastest)
    others = [i for i in drawn if i not in set(fastest)]
    axes = {knob: _values(trials, knob) for knob in trials[0].schedule.knobs}
    lines = [_line(axes, trials[i]) for i in (*others, *reversed(fastest))]
    kinds = ["thread"] * len(others) + ["thread two"] * (len(fastest) - 1) + ["thread one"]
    # Threads of one value are spread about it, so that a bundle looks as thick as it is.
    spread = np.random.default_rng(0).uniform(-0.02, 0.02, (len(lines), len(axes)))
    spread[len(others) :] = 0.0
    placed = [list(np.clip(line + s, 0.0, 1.0)) for line, s in zip(lines, spread, strict=True)]
    described = f"{len(trials)} trials of {sketch} over {len(axes)} knobs. The fastest: {trials[order[0]].schedule}."
    narrow, wide = _upright(axes, placed, kinds), _lying(axes, placed, kinds)
    rows = tuple((str(trials[i].schedule), duration(seconds[i])) for i in order[: detail.rows])
    missing = (
        f" Of {len(trials):,} trials {len(drawn):,} are drawn: the fastest and a random sample."
        if len(drawn) < len(trials)
        else ""
    )
    return Figure(
        name=name,
        title=f"The space of {sketch}",
        caption=(
            f"Each line is a trial through the values of its knobs; orange the {len(fastest)} fastest, blue the "
            f"fastest of all.{missing}"
        ),
        table=Table(("schedule", "time"), rows, f"The {len(rows)} fastest." if len(rows) < len(trials) else ""),
        narrow=narrow.svg(f"Parallel coordinates of {sketch}", described, f"{name}-narrow"),
        wide=wide.svg(f"Parallel coordinates of {sketch}", described, f"{name}-wide"),
    )


def _values(trials: Sequence[Measurement], knob: str) -> list[Value]:
    """The values of a knob that ran: numbers by size, words by the alphabet."""
    return sorted({t.schedule[knob] for t in trials}, key=lambda v: (str(type(v)), v))


def _line(axes: dict[str, list[Value]], trial: Measurement) -> NDArray[np.float64]:
    """Where a trial crosses each axis, 0 to 1."""
    return np.array([(values.index(trial.schedule[k]) + 0.5) / len(values) for k, values in axes.items()])


def _ticks(values: Sequence[Value], most: int) -> list[tuple[float, str]]:
    """Places and words of an axis; of many values some."""
    step = -(-len(values) // most)
    return [((i + 0.5) / len(values), text(values[i])) for i in range(0, len(values), step)]


def _upright(axes: dict[str, list[Value]], lines: Sequence[list[float]], kinds: Sequence[str]) -> Chart:
    """For narrow pages: axes one below the other, lines run down."""
    size = Size(NARROW, 24.0 + _ROW * len(axes), left=8.0, right=8.0, top=22.0, bottom=20.0)
    chart = Chart(size, Scale(0.0, 1.0), Scale(-0.35, len(axes) - 1 + 0.1))
    rows = range(len(axes) - 1, -1, -1)
    for line, kind in zip(lines, kinds, strict=True):
        chart.curve(list(zip(line, rows, strict=True)), kind)
    for row, (knob, values) in zip(rows, axes.items(), strict=True):
        chart.segment((0.0, row), (1.0, row), "frame")
        chart.text((size.left, chart.y(row) - 6), knob, "label halo")
        longest = max(len(text(v)) for v in values)
        for place, words in _ticks(values, min(_MOST_TICKS, max(2, int(48 / (longest + 1))))):
            chart.text((chart.x(place), chart.y(row) + FONT + 1), words, "tick halo", anchor="middle")
    return chart


def _lying(axes: dict[str, list[Value]], lines: Sequence[list[float]], kinds: Sequence[str]) -> Chart:
    """For wide pages: axes side by side, lines run to the right."""
    size = Size(WIDE, 330.0, left=40.0, right=90.0, top=12.0, bottom=34.0)
    chart = Chart(size, Scale(0.0, max(1.0, len(axes) - 1)), Scale(0.0, 1.0))
    for line, kind in zip(lines, kinds, strict=True):
        chart.curve(list(enumerate(line)), kind)
    room = (chart.x.end - chart.x.start) / max(1, len(axes) - 1)
    for column, (knob, values) in enumerate(axes.items()):
        chart.segment((column, 0.0), (column, 1.0), "frame")
        for place, words in _ticks(values, _MOST_TICKS):
            chart.text((chart.x(column) + 5, chart.y(place) + FONT / 3), shortened(words, room - 10), "tick halo")
        lowered = size.height - 18 + (FONT + 2) * (column % 2)
        chart.text((chart.x(column), lowered), shortened(knob, 2 * room - 8), "label", anchor="middle")
    return chart
