"""The final race: how many times faster than the default each contestant is, with its interval."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from autotune.display import duration
from autotune.race import ratio
from autotune.records import RaceRecord, Ratio, ScheduleData
from autotune.reporting.chart import Chart, Size, shortened
from autotune.reporting.figure import NARROW, Figure, Table
from autotune.reporting.scale import Scale
from search_spaces.schedule import text
from search_spaces.space import Schedule

_ROW = 42.0


@dataclass(frozen=True)
class _Contestant:
    """Who raced: a name that tells it from the others, its seconds and how many times faster than the yardstick."""

    name: str
    whole: str
    seconds: float
    times: Ratio
    kind: str


def race_plot(race: RaceRecord, name: str) -> Figure | None:
    """The figure; None where fewer than two raced."""
    yardstick = race.default if race.default in race.schedules else race.winner
    against = race.samples[race.schedules.index(yardstick)]
    found = _contestants(race, against)
    if len(found) < 2 or not against:
        return None
    size = Size(NARROW, 60.0 + _ROW * len(found), left=14.0, right=14.0, top=10.0)
    ends = [e for c in found for e in (c.times.low, c.times.high, c.times.times) if 0 < e < float("inf")]
    chart = Chart(size, Scale.over([1.0, *ends], margin=0.06), Scale(-0.5, len(found) - 0.5))
    what = "untuned default" if yardstick == race.default else "winner"
    chart.x_axis(f"times faster than the {what}", lambda v: f"{v:.6g}x")
    chart.upright(1.0, "zero")
    for row, contestant in enumerate(reversed(found)):
        low, high = (min(max(e, chart.x.low), chart.x.high) for e in (contestant.times.low, contestant.times.high))
        chart.segment((low, row - 0.2), (high, row - 0.2), f"interval {contestant.kind}")
        chart.dots([(contestant.times.times, row - 0.2)], f"big {contestant.kind}")
        words = f"{duration(contestant.seconds)}  {contestant.name}"
        place = (size.left, chart.y(row) - 3)
        chart.text(place, shortened(words, size.width - 2 * size.left), f"label {contestant.kind}")
    best = found[0]
    described = "; ".join(f"{c.name}: {_interval(c.times)}" for c in found)
    voided = f" Looks not counted, because the default drifted in them: {race.voided}." if race.voided else ""
    return Figure(
        name=name,
        title="The final race",
        caption=(
            f"{len(against)} rounds, all contestants interleaved in random order; dots are medians, bars the exact "
            f"intervals with which the race decides. To the right of 1x is faster than the {what}." + voided
        ),
        table=Table(
            ("contestant", "median", "times faster", "from", "to"),
            tuple(
                (c.whole, duration(c.seconds), f"{c.times.times:.4g}x", f"{c.times.low:.4g}x", f"{c.times.high:.4g}x")
                for c in found
            ),
        ),
        narrow=chart.svg("Contestants of the final race", f"Fastest: {best.name}. {described}", name),
    )


def _contestants(race: RaceRecord, against: tuple[float, ...]) -> list[_Contestant]:
    """Everyone whose rounds pair with those of the yardstick, the fastest first."""
    found = []
    for data, samples in zip(race.schedules, race.samples, strict=True):
        kind, role = "other", ""
        if data == race.winner:
            kind, role = "one", "winner, the default" if data == race.default else "winner"
        elif data == race.default:
            kind, role = "two", "untuned default"
        if len(samples) == len(against):
            times = ratio(against, samples)
            shown = role or _name(race, data)
            whole = f"{Schedule.from_json(data)}{f' ({role})' if role else ''}"
            found.append(_Contestant(shown, whole, statistics.median(samples), times, kind))
    for call, samples in race.library.items():
        if len(samples) == len(against):
            found.append(_Contestant(call, call, statistics.median(samples), ratio(against, samples), "three"))
    return sorted(found, key=lambda c: c.seconds)


def _name(race: RaceRecord, data: ScheduleData) -> str:
    """What tells a finalist from the winner; one of another sketch, what tells it from the others of that sketch."""
    mine, winner = Schedule.from_json(data), Schedule.from_json(race.winner)
    if mine.sketch == winner.sketch:
        return " ".join(f"{k}={text(v)}" for k, v in mine.items[1:] if winner.knobs.get(k) != v) or str(mine)
    peers = [s.knobs for s in map(Schedule.from_json, race.schedules) if s.sketch == mine.sketch and s != mine]
    differing = [f"{k}={text(v)}" for k, v in mine.items[1:] if any(p.get(k) != v for p in peers)]
    return " ".join([*differing, f"({mine.sketch})"])


def _interval(times: Ratio) -> str:
    return f"{times.times:.4g} times the speed, from {times.low:.4g} to {times.high:.4g}"
