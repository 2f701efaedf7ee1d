"""How well the cost model of a run ranks the run's own trials when it has not seen them."""

from __future__ import annotations

import numpy as np

from autotune.journal import RunLog
from autotune.tune import MODELS, STRATEGIES
from cost_models.features import Features
from cost_models.ranking import Quality, held_out
from search_spaces import registry
from search_spaces.errors import AutotuneError
from search_spaces.listed import ListedSpace


def quality_of(log: RunLog) -> tuple[str, Quality] | None:
    """Name and quality of the model of the run's strategy, with the knobs alone as features.

    None where the strategy uses no model or is not at hand, or where there are too few trials.
    """
    run, trials = log.runs[-1], list(log.trials.values())
    try:
        name = registry.find(STRATEGIES, run.strategy, "strategy").model
        model = registry.find(MODELS, name, "model") if name else None
    except AutotuneError:
        return None
    if model is None or not trials:
        return None
    schedules = [m.schedule for m in trials]
    features = Features(ListedSpace.of(schedules))
    quality = held_out(lambda: model(features, run.seed), schedules, np.array([m.seconds for m in trials]))
    return None if quality is None else (name, quality)
