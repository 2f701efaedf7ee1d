"""How well the cost model of a run ranks the run's own trials when it has not seen them."""

from __future__ import annotations

import numpy as np

from autotune.journal import RunLog
from autotune.trust import is_shipped
from autotune.tune import STRATEGIES
from cost_models.features import Features
from cost_models.model import MODELS
from cost_models.ranking import Quality, held_out
from search_spaces import registry
from search_spaces.errors import AutotuneError
from search_spaces.listed import ListedSpace

# Trials on which a model is judged: some of the models take minutes for thousands.
MOST_JUDGED = 400


def quality_of(log: RunLog) -> tuple[str, Quality, int] | None:
    """Name and quality of the model of the run's strategy, with the knobs alone as features.

    Returns:
        Both, and on how many trials it was judged: all, or `MOST_JUDGED` chosen at random. None where the strategy uses
        no model or is none of this project's, or where there are too few trials.
    """
    run, count = log.runs[-1], len(log.trials)
    if not is_shipped(STRATEGIES, run.strategy):
        return None
    places = np.random.default_rng(0).choice(count, min(count, MOST_JUDGED), replace=False)
    trials = [log.trials.at(int(place)) for place in sorted(places)]
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
    return None if quality is None else (name, quality, len(trials))
