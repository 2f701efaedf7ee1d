"""Journals in a real MLflow store: SQLite, and a real server that is killed half-way."""

import math
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import pytest

from autotune.journal import FILE, load_runs, read_journal
from autotune.measurement import Status
from autotune.policy.policy import Policy
from autotune.records import RunRecord, TrialRecord
from autotune.tracking.follower import following, store_uri
from autotune.tracking.mapping import Curve
from autotune.tracking.models import TRIALS as LEARNT_FROM
from autotune.tracking.store import Store, StoreFailed, local_uri
from autotune.tracking.sync import Sync, sync_all
from cost_models.features import Features
from cost_models.ranking import pair_accuracy
from search_spaces.errors import MissingDependency
from search_spaces.listed import ListedSpace
from tests.support.recorded import tune_recorded

mlflow = pytest.importorskip("mlflow")
TRIALS = 30


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    tune_recorded(folder, TRIALS, "random")
    return folder


def stored(uri):
    """The only run of the experiment, and a function for its metrics' histories."""
    client = mlflow.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("autotune").experiment_id])
    return run, lambda key: client.get_metric_history(run.info.run_id, key), client


def check_whole(uri, folder):
    run, history, client = stored(uri)
    (log,) = load_runs(folder)
    ok = [m.seconds for m in log.trials.values() if m.status is Status.OK]
    assert [p.value for p in sorted(history("seconds"), key=lambda p: p.step)] == ok
    assert min(p.value for p in history("best_seconds")) == log.best.seconds
    assert run.data.metrics["failed"] == len(log.trials) - len(ok) > 0
    assert run.data.metrics["speedup_over_default"] == log.races[-1].over_default.times
    assert run.info.status == "FINISHED"
    assert run.info.end_time >= max(p.timestamp for p in history("failed"))
    assert run.info.start_time == round(1000 * datetime.fromisoformat(log.runs[0].started).timestamp())
    assert f"{log.races[-1].over_default.times:.4g}x" in run.data.tags["mlflow.note.content"]
    assert run.data.params["strategy"] == "random"
    assert run.data.params["axis.N"] == "64"
    assert {f.path for f in client.list_artifacts(run.info.run_id)} >= {FILE, "tuned-log.json"}


def test_a_finished_run_is_all_there_and_a_second_sync_adds_nothing(journal, tmp_path):
    uri = local_uri(tmp_path)
    assert list(sync_all([journal], Store(uri, "autotune")).values()) == [TRIALS + 1]
    check_whole(uri, journal)
    assert list(sync_all([journal], Store(uri, "autotune")).values()) == [0]
    check_whole(uri, journal)


def test_the_report_is_attached_once_and_anew_when_the_run_went_on(tmp_path):
    folder, uri = tmp_path / "run", local_uri(tmp_path)
    for trials in (8, 20):
        tune_recorded(folder, trials, "random")
        syncs = [Sync(folder, Store(uri, "autotune")) for _ in range(2)]
        for sync in syncs:
            sync.finish()
        assert [sync.attach_reports() for sync in syncs] == [1, 0]
        run, _, client = stored(uri)
        page = Path(client.download_artifacts(run.info.run_id, "report.html")).read_text()
        assert f"{trials} trials" in page
    (folder / "report.html").write_text("mine")
    tune_recorded(folder, 24, "random")
    assert list(sync_all([folder], Store(uri, "autotune")).values()) == [5]
    assert Path(client.download_artifacts(run.info.run_id, "report.html")).read_text() == "mine"


def test_a_sync_without_what_draws_reports_says_so_and_does_the_rest(journal, tmp_path, monkeypatch):
    def missing(*_):
        raise MissingDependency("jinja2 is not usable here", "pip install jinja2")

    monkeypatch.setattr("autotune.tracking.page.report", missing)
    notices = []
    sync_all([journal], Store(local_uri(tmp_path), "autotune"), notices.append)
    check_whole(local_uri(tmp_path), journal)
    assert ["no report is attached: jinja2" in notice for notice in notices] == [True]


def test_a_continued_run_stays_one_run(tmp_path):
    uri = local_uri(tmp_path)
    for trials in (8, 20):
        tune_recorded(tmp_path / "run", trials, "random")
        sync_all([tmp_path / "run"], Store(uri, "autotune"))
    _, history, _ = stored(uri)
    (log,) = load_runs(tmp_path / "run")
    assert len(log.runs) == 2
    assert len(history("seconds")) == sum(math.isfinite(m.seconds) for m in log.trials.values())


def test_what_a_run_learnt_is_logged_as_models_that_load(tmp_path):
    folder, uri = tmp_path / "run", local_uri(tmp_path)
    for trials in (24, 40):
        tune_recorded(folder, trials, "rl")
        for _ in range(2):
            sync_all([folder], Store(uri, "autotune"))
    run, _, client = stored(uri)
    models = client.search_logged_models([run.info.experiment_id])
    assert sorted((m.name, m.tags[LEARNT_FROM]) for m in models) == sorted(
        (name, trials) for name in ("cost_model", "policy") for trials in ("24", "40")
    )
    shown = {(o.model_id, o.step) for o in run.outputs.model_outputs}
    assert shown == {(m.model_id, int(m.tags[LEARNT_FROM])) for m in models}
    place = {(m.name, m.tags[LEARNT_FROM]): m.artifact_location for m in models}
    booster = mlflow.xgboost.load_model(place["cost_model", "40"])
    (log,) = load_runs(folder)
    schedules = list(log.trials)
    features = Features(ListedSpace.of(schedules))
    assert booster.num_features() == len(features.columns)
    believed = -booster.inplace_predict(features(schedules))
    assert pair_accuracy(believed, np.array([m.seconds for m in log.trials.values()])) > 0.8
    policy = Policy.load(Path(urllib.parse.urlparse(place["policy", "40"]).path) / "policy.npz")
    assert policy.table.values.shape[0] > 1


def test_a_run_cut_off_before_its_race_is_marked_as_such(journal, tmp_path):
    lines = (journal / FILE).read_bytes().splitlines(keepends=True)
    (tmp_path / FILE).write_bytes(b"".join(lines[:12]) + lines[12][:20])
    uri = local_uri(tmp_path)
    sync_all([tmp_path], Store(uri, "autotune"))
    run, history, _ = stored(uri)
    assert run.info.status == "KILLED"
    assert len(history("failed")) == 11


def test_a_growing_journal_is_followed(journal, tmp_path):
    whole = (journal / FILE).read_bytes()
    uri = local_uri(tmp_path)
    sync = Sync(tmp_path / "run", Store(uri, "autotune"))
    (tmp_path / "run").mkdir()
    assert sync.catch_up() == 0
    sent = 0
    for end in range(0, len(whole), 3001):
        (tmp_path / "run" / FILE).write_bytes(whole[:end])
        sent += sync.catch_up()
    (tmp_path / "run" / FILE).write_bytes(whole)
    (tmp_path / "run" / "tuned-log.json").write_bytes((journal / "tuned-log.json").read_bytes())
    assert 0 < sent < TRIALS + 1
    sync.finish()
    check_whole(uri, tmp_path / "run")


def test_the_process_beside_the_run_sends_everything(tmp_path):
    uri, notices = local_uri(tmp_path), []
    with following(tmp_path / "run", uri, "autotune", notices.append):
        tune_recorded(tmp_path / "run", TRIALS, "random")
    assert notices == []
    check_whole(uri, tmp_path / "run")


def test_the_process_beside_the_run_gives_way_until_the_run_waits_for_it(journal, tmp_path):
    """As a session: Linux shares processors out by session first, and a process's priority counts within one."""
    words = [sys.executable, "-m", "autotune", "sync", journal, "--follow", "--to", local_uri(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, start_new_session=True) as process:
        session = Path(f"/proc/{process.pid}/autogroup")
        if not session.is_file():
            process.kill()
            pytest.skip("this system has no session groups")
        while process.poll() is None and not session.read_text().endswith("nice 19\n"):
            time.sleep(0.05)
        process.stdin.close()
        while process.poll() is None and not session.read_text().endswith("nice 0\n"):
            time.sleep(0.01)
        assert process.poll() is None, "what the run then waits for is not held up"
    assert process.returncode == 0


@pytest.mark.faults
def test_a_store_that_is_down_costs_the_run_nothing_but_a_line(tmp_path):
    notices = []
    with following(tmp_path / "run", f"http://127.0.0.1:{free_port()}", "autotune", notices.append):
        outcome = tune_recorded(tmp_path / "run", 8, "random")
    assert outcome.entry is not None
    (line,) = notices
    assert "MLflow is not up to date" in line
    assert f"autotune sync {tmp_path / 'run'}" in line
    uri = local_uri(tmp_path)
    sync_all([tmp_path / "run"], Store(uri, "autotune"))
    assert stored(uri)[0].info.status == "FINISHED"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """`mlflow server` on loopback, over a SQLite file."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.uri = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        words = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(self.port)]
        words += ["--workers", "1", "--backend-store-uri", f"sqlite:///{self.folder / 'server.db'}"]
        words += ["--artifacts-destination", str(self.folder / "artifacts")]
        log = (self.folder / "server.log").open("ab")
        # Its job runners would outlive it.
        environment = os.environ | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        self.process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True, env=environment)
        for _ in range(1200):
            try:
                with urllib.request.urlopen(f"{self.uri}/health", timeout=1):
                    return
            except OSError:
                assert self.process.poll() is None, (self.folder / "server.log").read_text()
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.mark.slow
@pytest.mark.faults
def test_a_server_killed_half_way_ends_up_with_everything_once(journal, tmp_path):
    pytest.importorskip("aiohttp")
    whole = (journal / FILE).read_bytes()
    (tmp_path / "run").mkdir()
    growing = tmp_path / "run" / FILE
    server = Server(tmp_path)
    try:
        sync = Sync(tmp_path / "run", Store(server.uri, "autotune"))
        growing.write_bytes(whole[: len(whole) // 2])
        half = sync.catch_up()
        server.kill()
        growing.write_bytes(whole)
        with pytest.raises(StoreFailed, match="autotune sync"):
            sync.catch_up()
        server.start()
        assert half + sync.catch_up() == TRIALS + 1
        (tmp_path / "run" / "tuned-log.json").write_bytes((journal / "tuned-log.json").read_bytes())
        # Another process, which knows nothing of what was sent.
        assert list(sync_all([tmp_path / "run"], Store(server.uri, "autotune")).values()) == [0]
        check_whole(server.uri, journal)
    finally:
        server.kill()


def test_where_a_run_is_tracked(tmp_path):
    assert store_uri("none", tmp_path) is None
    assert store_uri("http://host:5000", tmp_path) == "http://host:5000"
    assert store_uri(None, tmp_path / "mine") == f"sqlite:///{tmp_path}/mine/mlflow.db"
    assert store_uri(None, tmp_path / "autotune-runs" / "one") == f"sqlite:///{tmp_path}/autotune-runs/mlflow.db"


def test_points_follow_from_the_journal_alone(journal):
    records = list(read_journal(journal))
    run = next(r for r in records if isinstance(r, RunRecord))
    trials = [r for r in records if isinstance(r, TrialRecord)]
    points = [[list(curve.points(t)) for t in trials] for curve in (Curve(run), Curve(run))]
    assert points[0] == points[1]
    last = {p.key: p for p in points[0][-1]}
    assert all("predicted_seconds" not in {p.key for p in Curve(run).points(t)} for t in trials if t.predicted is None)
    expected = list(Curve(run).points(msgspec.structs.replace(trials[-1], predicted=2e-3)))
    assert {p.value for p in expected if p.key == "predicted_seconds"} == {2e-3}
    assert last["best_roofline_share"].value == run.floor_seconds / last["best_seconds"].value
