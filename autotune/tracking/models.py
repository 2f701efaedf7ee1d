"""What a run has learnt, as models that MLflow logs and loads: the cost model of its trials, and its policy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.journal import RunLog
from autotune.strategies.rl import FILE as POLICY
from cost_models.features import Features
from cost_models.model import MODELS
from search_spaces import registry
from search_spaces.listed import ListedSpace

TRIALS = "autotune.trials"
COST_MODEL, RL_POLICY = "cost_model", "policy"


@dataclass(frozen=True)
class Learnt:
    """A model in a folder.

    Attributes:
        name: Its name in MLflow.
        kind: Its type in MLflow.
        folder: Its files; of a cost model as `mlflow.xgboost.load_model` takes them.
        tags: What a reader must know; under `TRIALS` how many it learnt from.
    """

    name: str
    kind: str
    folder: Path
    tags: dict[str, str]


def learnt(log: RunLog, folder: Path, scratch: Path, held: Mapping[str, str]) -> Iterator[Learnt]:
    """Models of a run, those that there are and that are not held yet.

    Args:
        log: The run.
        folder: Where it left its files.
        scratch: An empty folder for the models' files.
        held: Name -> from how many trials that which is held learnt.
    """
    trials = str(len(log.trials))
    model = _cost_model(log, scratch / "cost-model") if held.get(COST_MODEL) != trials else None
    if model is not None:
        yield model
    if (folder / POLICY).is_file() and held.get(RL_POLICY) != trials:
        place = scratch / "policy"
        place.mkdir()
        (place / POLICY).write_bytes((folder / POLICY).read_bytes())
        tags = {TRIALS: trials, "autotune.reads": "autotune.policy.policy.Policy.load"}
        yield Learnt(RL_POLICY, "autotune-policy", place, tags)


def _cost_model(log: RunLog, place: Path) -> Learnt | None:
    """Boosted trees that expect a throughput, of all trials; None where there are too few.

    It is fitted here and not taken from the run, since the journal is all that is sure to be there.
    """
    trials = list(log.trials.values())
    if not trials or not registry.available("xgboost"):
        return None
    schedules = [m.schedule for m in trials]
    features = Features(ListedSpace.of(schedules))
    model = registry.find(MODELS, "throughput", "model")(features, log.runs[-1].seed)
    model.fit(schedules, np.array([m.seconds for m in trials]))
    if model.booster is None:
        return None
    versions = log.runs[-1].environment.versions
    xgboost = next((f"{name}=={versions[name]}" for name in ("xgboost-cpu", "xgboost") if name in versions), "xgboost")
    flavor = registry.optional("mlflow.xgboost", "mlflow")
    flavor.save_model(model.booster, str(place), pip_requirements=[xgboost])
    mean, deviation = model.scale
    tags = {
        "autotune.features": ", ".join(features.columns),
        TRIALS: str(len(trials)),
        "autotune.target": f"(1 / seconds - {mean:.9g}) / {deviation:.9g}",
    }
    return Learnt(COST_MODEL, "xgboost", place, tags)
