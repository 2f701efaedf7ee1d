"""What MLflow is told of a run: the journal's records as parameters, tags and metric points."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from autotune.records import RaceRecord, RunRecord, TrialRecord
from search_spaces.schedule import Schedule


@dataclass(frozen=True)
class Point:
    """One value of a metric.

    Attributes:
        key: The metric's name.
        value: Its value, finite.
        step: Number of the trial.
        milliseconds: Since 1970, UTC; taken from the journal, so that a point sent twice is the same point.
    """

    key: str
    value: float
    step: int
    milliseconds: int


def parameters(run: RunRecord) -> dict[str, str]:
    """What was asked for, on what, with which software."""
    workload, policy = run.task.workload, run.policy
    found = {
        "operator": workload.operator,
        **{f"axis.{name}": str(value) for name, value in workload.axes},
        "dtype": workload.dtype,
        "target": run.task.target,
        "sketches": ", ".join(run.task.sketches),
        "space": run.task.space,
        "device": run.device.name,
        "device.arch": run.device.arch,
        "device.units": str(run.device.units),
        "device.driver": run.device.driver,
        "strategy": run.strategy,
        "prior": run.prior,
        "seed": str(run.seed),
        "trials": str(run.trials),
        "minutes": "" if run.minutes is None else str(run.minutes),
        "policy.samples": str(policy.samples),
        "policy.cold": str(policy.cold),
        "python": run.environment.python,
        "system": run.environment.system,
        **{f"version.{name}": version for name, version in run.environment.versions.items()},
        **{f"tool.{name}": version for name, version in run.environment.tools.items()},
    }
    return {name: value for name, value in found.items() if value}


def title(run: RunRecord) -> str:
    """The run's name in MLflow's lists."""
    shape = ",".join(f"{name}={value}" for name, value in run.task.workload.axes)
    return f"{run.task.workload.operator} {shape} {run.task.workload.dtype} on {run.device.name}"


class Curve:
    """The metric points of one run's trials, in their order; it carries the best so far and the failures so far.

    Args:
        run: The run that the trials belong to.

    Attributes:
        started: Milliseconds since 1970, UTC, of the run.
        ended: Likewise of its last trial so far.
    """

    def __init__(self, run: RunRecord) -> None:
        self._floor = run.floor_seconds
        self._start = datetime.fromisoformat(run.started).timestamp()
        self._best = math.inf
        self._failed = 0
        self.started = self.ended = round(1000 * self._start)

    def continued(self, run: RunRecord) -> None:
        """The run goes on: its clock starts anew."""
        self._start = datetime.fromisoformat(run.started).timestamp()

    def points(self, record: TrialRecord) -> Iterator[Point]:
        """Latency, share of the roofline and what the model expected, where there are such; failures so far always."""
        seconds = record.measurement().seconds
        self._best = min(self._best, seconds)
        self._failed += not math.isfinite(seconds)
        values = {
            "seconds": seconds,
            "best_seconds": self._best,
            "roofline_share": self._floor / seconds,
            "best_roofline_share": self._floor / self._best,
            "failed": float(self._failed),
            "predicted_seconds": math.nan if record.predicted is None else record.predicted,
        }
        if not math.isfinite(seconds):
            del values["seconds"], values["roofline_share"]
        at = self.ended = round(1000 * (self._start + record.at))
        for key, value in values.items():
            if math.isfinite(value):
                yield Point(key, value, record.trial, at)

    def race_points(self, race: RaceRecord, step: int) -> Iterator[Point]:
        """The final race's speed-ups with their intervals."""
        for name, ratio in (("speedup_over_default", race.over_default), ("speedup_over_library", race.over_library)):
            if ratio is not None:
                for suffix, value in (("", ratio.times), ("_low", ratio.low), ("_high", ratio.high)):
                    yield Point(name + suffix, value, step, round(1000 * self._start))


def race_tags(race: RaceRecord) -> dict[str, str]:
    """The winner, as words; MLflow shows the note above everything else of a run."""
    against = {"the untuned default": race.over_default, "the library": race.over_library}
    ratios = [
        f"{ratio.times:.4g}x ({ratio.low:.4g} to {ratio.high:.4g}, 95 %) against {what}"
        for what, ratio in against.items()
        if ratio is not None
    ]
    return {
        "autotune.winner": json.dumps(race.winner),
        "autotune.default_kept": str(race.winner == race.default),
        "mlflow.note.content": "\n\n".join((f"`{Schedule.from_json(race.winner)}`", *ratios)),
    }
