"""The gate to MLflow: a tracking store, an experiment in it, and the runs that stand for tuning runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.environment import modest_mlflow, without_password
from autotune.tracking.mapping import Point
from autotune.tracking.models import TRIALS, Learnt
from search_spaces import registry
from search_spaces.errors import AutotuneError, ExitCode

FILE = "mlflow.db"
_ARTIFACTS = "mlflow-artifacts"
RUN, RECORDS, MODEL, REPORT = "autotune.run", "autotune.records", "autotune.model", "autotune.report"
# MLflow shows an experiment of no kind among those of language models.
_EXPERIMENT = {
    "mlflow.experimentKind": "custom_model_development",
    "mlflow.experiment.primaryMetric.name": "best_seconds",
    "mlflow.experiment.primaryMetric.greaterIsBetter": "False",
}
_SOURCE = {"mlflow.source.name": "autotune", "mlflow.source.type": "LOCAL"}
# What MLflow takes in one call.
_METRICS, _PARAMETERS = 1000, 100


class StoreFailed(AutotuneError):
    """The tracking store is down, full or refuses."""

    exit_code = ExitCode.CANNOT_WRITE


def local_uri(folder: Path) -> str:
    """The address of the SQLite store in `folder`."""
    return f"sqlite:///{folder.resolve() / FILE}"


class Store:
    """One experiment of one tracking store.

    Args:
        uri: MLflow's tracking address: `sqlite:///file`, `http://host:port`, ...
        experiment: Name of the experiment; made where it is not there.

    Raises:
        StoreFailed: The store does not answer.
        MissingDependency: MLflow is not installed.
    """

    def __init__(self, uri: str, experiment: str) -> None:
        modest_mlflow()
        self._mlflow = registry.optional("mlflow", "mlflow")
        self._entities = registry.optional("mlflow.entities", "mlflow")
        self.uri = uri
        with self._failing():
            self._client: Any = self._mlflow.MlflowClient(tracking_uri=uri)
            self._experiment = self._experiment_id(experiment)

    def _experiment_id(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        local = self.uri.startswith("sqlite:///")
        place = (Path(self.uri.removeprefix("sqlite:///")).parent / _ARTIFACTS / name).as_uri() if local else None
        return str(self._client.create_experiment(name, artifact_location=place, tags=_EXPERIMENT))

    def open_run(self, key: str, name: str, parameters: Mapping[str, str], started: int) -> tuple[str, int]:
        """The MLflow run of a tuning run; made where it is not there.

        Args:
            key: The tuning run's name in its journal.
            name: How it is shown.
            parameters: Logged when it is made.
            started: Milliseconds since 1970, UTC.

        Returns:
            Its MLflow id, and how many of its records the store holds already.
        """
        with self._failing():
            found = self._client.search_runs([self._experiment], f"tags.`{RUN}` = '{key}'", max_results=1)
            if found:
                return str(found[0].info.run_id), int(found[0].data.tags.get(RECORDS, "0"))
            commit = self._commit()
            tags = {RUN: key, RECORDS: "0", **_SOURCE, **({"mlflow.source.git.commit": commit} if commit else {})}
            made = self._client.create_run(self._experiment, start_time=started, tags=tags, run_name=name)
            run_id = str(made.info.run_id)
            items = [self._entities.Param(k, v) for k, v in parameters.items()]
            for start in range(0, len(items), _PARAMETERS):
                self._client.log_batch(run_id, params=items[start : start + _PARAMETERS])
            return run_id, 0

    def log(self, run_id: str, batches: Sequence[Sequence[Point]], records: int) -> None:
        """Logs the points of further records, one sequence a record, in calls as large as MLflow takes.

        Args:
            run_id: MLflow's id of the run.
            batches: Points of each record.
            records: How many records the store held before.
        """
        held, points = records, list[Point]()
        for number, batch in enumerate(batches, start=records + 1):
            if len(points) + len(batch) > _METRICS:
                self._log(run_id, points, held)
                points = []
            points += batch
            held = number
        self._log(run_id, points, held)

    def _log(self, run_id: str, points: Sequence[Point], records: int) -> None:
        metrics = [self._entities.Metric(p.key, p.value, p.milliseconds, p.step) for p in points]
        # In one call with the points, so that a store cut off half-way knows what it has.
        tags = [self._entities.RunTag(RECORDS, str(records))]
        with self._failing():
            self._client.log_batch(run_id, metrics=metrics, tags=tags)

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Sets tags."""
        with self._failing():
            self._client.log_batch(run_id, tags=[self._entities.RunTag(k, v) for k, v in tags.items()])

    def attach(self, run_id: str, files: Sequence[Path]) -> None:
        """Files as artefacts of the run; what was there under the same name is replaced."""
        with self._failing():
            for file in files:
                self._client.log_artifact(run_id, str(file))

    def tag_of(self, run_id: str, name: str) -> str:
        """A tag of the run, "" where it has none of that name."""
        with self._failing():
            return str(self._client.get_run(run_id).data.tags.get(name, ""))

    def models(self, run_id: str) -> dict[str, str]:
        """Logged models of the run: name -> from how many trials the latest learnt."""
        with self._failing():
            tags = self._client.get_run(run_id).data.tags
        return {name.removeprefix(f"{MODEL}."): trials for name, trials in tags.items() if name.startswith(f"{MODEL}.")}

    def log_model(self, run_id: str, model: Learnt) -> None:
        """A logged model of the run, beside those of its name that it may have."""
        with self._failing():
            made = self._client.create_logged_model(
                self._experiment, model.name, source_run_id=run_id, tags=model.tags, model_type=model.kind
            )
            self._client.log_model_artifacts(made.model_id, str(model.folder))
            self._client.finalize_logged_model(made.model_id, "READY")
            # Without it the run's own page knows of no model.
            entities = registry.optional("mlflow.entities", "mlflow")
            self._client.log_outputs(run_id, [entities.LoggedModelOutput(made.model_id, int(model.tags[TRIALS]))])
            self._client.set_tag(run_id, f"{MODEL}.{model.name}", model.tags[TRIALS])

    def end(self, run_id: str, status: str, ended: int) -> None:
        """Closes the run as FINISHED, KILLED or FAILED, `ended` milliseconds after 1970, UTC."""
        with self._failing():
            self._client.set_terminated(run_id, status, ended)

    @contextlib.contextmanager
    def system_metrics(self, run_id: str) -> Iterator[None]:
        """MLflow's own monitor of processor, memory, network and GPU, while the block runs."""
        monitor = registry.optional("mlflow.system_metrics.system_metrics_monitor", "mlflow").SystemMetricsMonitor(
            run_id, resume_logging=True, tracking_uri=self.uri
        )
        monitor.start()
        try:
            yield
        finally:
            monitor.finish()

    def _commit(self) -> str | None:
        """The commit of the repository that the user works in, None outside of one."""
        found: str | None = registry.optional("mlflow.utils.git_utils", "mlflow").get_git_commit(str(Path.cwd()))
        return found

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """One kind of error for everything that a store can do wrong.

        Beside MLflow's own errors a store raises those of its transport: requests', SQLAlchemy's, the system's.
        """
        try:
            yield
        except AutotuneError:
            raise
        except Exception as error:
            reason = without_password(" ".join(str(error).split()))[:200] or type(error).__name__
            raise StoreFailed(
                f"the tracking store {without_password(self.uri)} failed: {reason}",
                "bring it up, then 'autotune sync RUN'",
            ) from error
