"""Which knobs matter: to a cost model over all trials, and as measured around the winner."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.knob_effects import Evidence, KnobEffect
from autotune.reporting.attribution import LEAST
from autotune.reporting.chart import FONT, Chart, Size, shortened, text_width
from autotune.reporting.figure import NARROW, Figure, Table
from autotune.reporting.scale import Scale
from autotune.reporting.study import Study
from search_spaces.schedule import text

_ROW = 26.0
_MOST_KNOBS = 16
# Values of one knob drawn and listed, the cheapest first; percent beyond which they are drawn at the right edge.
_MOST_VALUES = 8
_MOST_PERCENT = 100.0


def importance_plot(study: Study, name: str) -> Figure:
    """SHAP of the cost model; without a picture where too few trials ran."""
    found, title = study.attribution, "What the cost model says of the knobs"
    if found is None:
        few = f"A model needs {LEAST} trials that ran and differ; this run has {len(study.measured)} that ran."
        return Figure(name, title, few, Table((), ()))
    knobs = list(found.percent)[:_MOST_KNOBS]
    left = min(130.0, 12.0 + max(map(text_width, knobs)))
    size = Size(NARROW, 54.0 + _ROW * len(knobs), left=left, right=52.0, top=8.0)
    chart = Chart(size, Scale(0.0, max(found.percent.values()) * 1.02 or 1.0), Scale(-0.5, len(knobs) - 0.5))
    chart.x_axis("moves the time by, on average", lambda v: f"{v:g} %", chart.x.ticks(4))
    for row, knob in enumerate(reversed(knobs)):
        chart.bar(found.percent[knob], row, 14.0, "one")
        baseline = chart.y(row) + FONT / 3
        chart.text((size.left - 6, baseline), shortened(knob, left - 6), "label", anchor="end")
        chart.text((chart.x(found.percent[knob]) + 5, baseline), f"{found.percent[knob]:.1f} %", "tick")
    winner = study.winner
    rows = tuple(
        (
            knob,
            f"{percent:.2f} %",
            "" if winner is None else _value_in(winner.knobs | {"sketch": winner.sketch}, knob),
            f"{found.winner[knob]:+.2f} %" if knob in found.winner else "",
        )
        for knob, percent in found.percent.items()
    )
    return Figure(
        name=name,
        title=title,
        caption=(
            f"Mean size of SHAP values over {found.attributed:,} trials: by how much a knob moves the predicted time, "
            "up or down. Knobs that a sketch lacks count for telling that sketch from others. Trials that failed are "
            "not in it."
        ),
        table=Table(("knob", "moves the time by", "winner's value", "which adds"), rows),
        narrow=chart.svg("Knob importance", "; ".join(f"{knob} {found.percent[knob]:.1f} %" for knob in knobs), name),
    )


def _value_in(values: dict[str, int | str | bool | tuple[int, ...]], knob: str) -> str:
    return text(values[knob]) if knob in values else "none"


def effects_plot(effects: Sequence[KnobEffect], name: str) -> Figure | None:
    """Measured main effects: what other values of the winner's knobs cost; None where no other value was tried."""
    tried = [e for e in effects if e.others][:_MOST_KNOBS]
    if not tried:
        return None
    size = Size(NARROW, 66.0 + 2 * 22.0 * len(tried), left=14.0, right=18.0, top=8.0)
    percents = [o.percent for e in tried for o in _shown(e) if o.percent is not None]
    highest = min(_MOST_PERCENT, max([5.0, *percents]))
    lowest = min([0.0, *percents])
    chart = Chart(size, Scale(lowest - 0.02 * highest, highest * 1.03), Scale(-0.5, len(tried) - 0.5))
    chart.x_axis("slower than the winner", lambda v: f"{v:g} %")
    chart.upright(0.0, "zero")
    for row, effect in enumerate(reversed(tried)):
        known = [o for o in _shown(effect) if o.percent is not None]
        chart.dots([(o.percent, row - 0.2) for o in known if o.alone and o.percent is not None], "big two")
        chart.dots([(o.percent, row - 0.2) for o in known if not o.alone and o.percent is not None], "small")
        chart.dots([(0.0, row - 0.2)], "big one")
        words = f"{effect.knob} = {text(effect.value)}"
        chart.text((size.left, chart.y(row) - 5), shortened(words, size.width - 2 * size.left), "label")
    rows = tuple(
        (
            f"{e.knob} = {text(e.value)}",
            text(o.value),
            _percent(o),
            "this knob alone" if o.alone else "others too",
            str(o.trials),
        )
        for e in tried
        for o in _shown(e)
    )
    beyond = sum(p > highest for p in percents)
    edge = f" What is slower than {highest:g} % is drawn at the right edge: {beyond}." if beyond else ""
    hidden = sum(len(e.others) - len(_shown(e)) for e in tried)
    more = f" Further values, slower or failed, that are left out: {hidden:,}." if hidden else ""
    return Figure(
        name=name,
        title="What other values cost, measured",
        caption=(
            "For each knob the winner's value (blue) and the others tried. Large dots differ from the winner in this "
            "knob alone; small grey ones are the best trial with that value, which differs in others too, so they are "
            "no effect of the knob by itself." + edge + more
        ),
        table=Table(("winner", "other value", "slower by", "differs in", "trials"), rows),
        narrow=chart.svg("Measured effects of the knobs", _described(tried), name),
    )


def _shown(effect: KnobEffect) -> tuple[Evidence, ...]:
    return effect.others[:_MOST_VALUES]


def _percent(evidence: Evidence) -> str:
    return evidence.failed if evidence.percent is None else f"{evidence.percent:+.1f} %"


def _described(effects: Sequence[KnobEffect]) -> str:
    parts = [f"{e.knob}: another value costs {e.cost:.1f} % at the median" for e in effects if e.cost is not None]
    return "; ".join(parts) or "no other value ran"
