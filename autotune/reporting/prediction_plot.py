"""Predicted against measured time of trials that the model had not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.display import duration
from autotune.reporting.attribution import FOLDS, LEAST
from autotune.reporting.chart import Chart, Size
from autotune.reporting.figure import NARROW, Detail, Figure, Table, left_out, thinned
from autotune.reporting.scale import Scale
from autotune.reporting.study import Study
from cost_models.ranking import TOP


def prediction_plot(study: Study, name: str, detail: Detail) -> Figure:
    """The figure; without a picture where too few trials ran."""
    found = study.attribution
    title = "Predicted against measured"
    if found is None:
        few = f"A model needs {LEAST} trials that ran and differ; this run has {len(study.measured)} that ran."
        return Figure(name, title, few, Table((), ()))
    before = [(t.seconds, study.expected[t.schedule]) for _, t in study.measured if t.schedule in study.expected]
    both = [*found.measured.tolist(), *found.predicted.tolist(), *(s for pair in before for s in pair)]
    scale = Scale.over(both, log=True)
    chart = Chart(Size(NARROW, 330.0, top=26.0), scale, scale)
    chart.x_axis("measured", duration, scale.ticks(4))
    chart.y_axis("predicted", duration)
    chart.curve([(scale.low, scale.low), (scale.high, scale.high)], "zero")
    drawn = thinned(len(found.measured), detail.dots)
    chart.dots([(found.measured[i], found.predicted[i]) for i in drawn], "faint one")
    kept = thinned(len(before), detail.dots)
    chart.dots([before[i] for i in kept], "faint two")
    order = np.argsort(found.measured)[: detail.rows]
    rows = tuple((str(found.schedules[i]), duration(found.measured[i]), duration(found.predicted[i])) for i in order)
    return Figure(
        name=name,
        title=title,
        caption=(
            f"Blue, XGBoost on the knobs alone: each dot is predicted by a model that learnt from the other parts of "
            f"{FOLDS}. On the line it is right. Rank correlation {found.rank_correlation:.2f}; half of the predictions "
            f"are within {found.typical_error:.1%}."
            + _own_model(study)
            + _before(before)
            + left_out(len(found.measured), len(drawn), "trials that ran")
        ),
        table=Table(
            ("schedule", "measured", "predicted"), rows, f"The {len(rows)} fastest." if len(rows) < len(drawn) else ""
        ),
        narrow=chart.svg(
            title,
            f"Rank correlation {found.rank_correlation:.2f}, median error {found.typical_error:.1%}.",
            name,
        ),
    )


def _before(pairs: Sequence[tuple[float, float]]) -> str:
    """What the search expected of its trials before it measured them."""
    if len(pairs) < 2:
        return ""
    measured, predicted = np.array(pairs).T
    error = float(np.median(np.abs(predicted / measured - 1.0)))
    return (
        f" Orange, what the search's model expected of {len(pairs):,} trials before it measured them; half of that is "
        f"within {error:.1%}."
    )


def _own_model(study: Study) -> str:
    """How the model that the search used ranks trials kept from it."""
    if study.quality is None:
        return ""
    model, quality, judged = study.quality
    return (
        f" The search's own model {model}, judged on {judged:,} trials kept from it, puts "
        f"{quality.pair_accuracy:.0%} of pairs in order and "
        f"has {quality.top_recall:.0%} of the {TOP} fastest among its first {TOP}."
    )
