"""Runs on a real Ray cluster of two nodes: the same records as without it, and what is lost with a node."""

import shutil
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from autotune.journal import load_runs, read_journal
from autotune.measurement import Status
from autotune.records import DeviceRecord, TrialRecord
from search_spaces import registry
from search_spaces.errors import ExitCode
from search_spaces.registry import load_file

SUPPORT = Path(__file__).parents[2] / "support"
RUN = SUPPORT / "ray_run.py"
cluster_module = load_file(SUPPORT / "cluster.py")
cores = load_file(SUPPORT / "cores.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not registry.available("ray"), reason="Ray is not installed: the extra 'ray' brings it"),
]
STRATEGY = "evolutionary"
SECONDS = 500


@pytest.fixture(scope="module")
def made():
    folder = Path(tempfile.mkdtemp(prefix="at"))
    cluster = cluster_module.Cluster(folder, RECORDED_SLOWED_BY=str(folder / "slow"))
    yield cluster
    cluster.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(made):
    """With both nodes up, and quick."""
    (made.folder / "slow").unlink(missing_ok=True)
    made.start(0)
    made.start(1)
    return made


def run(cluster, folder, nodes=2, trials=24):
    return cluster.popen(RUN, folder, cluster.address, nodes, trials, STRATEGY)


def finish(process):
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, out + err
    return out


def follow(process, steps):
    """Reads the process's lines to its end; each step is what a line must hold, and what is done then."""
    lines, left = [], list(steps)
    for line in process.stdout:
        lines.append(line)
        if left and left[0][0] in line:
            left.pop(0)[1]()
    err = process.stderr.read()
    process.wait(timeout=SECONDS)
    assert not left, "".join(lines) + err
    return lines, err


def trials_of(folder):
    return [r for r in read_journal(folder) if isinstance(r, TrialRecord)]


def told(folder):
    """What does not depend on which device measured, or when."""
    (log,) = load_runs(folder)
    trials = {s: (m.status, tuple(round(t, 12) for t in m.samples), m.binary) for s, m in log.trials.items()}
    return trials, log.races[-1].winner, log.races[-1].over_default


def test_ray_and_this_machine_give_the_same_records(cluster, tmp_path, monkeypatch):
    finish(run(cluster, tmp_path / "ray"))
    cores.set_cores(monkeypatch, {}, {})
    cores.recorded.tune_recorded(tmp_path / "local", 24, STRATEGY, device=cores.NAME)
    assert told(tmp_path / "ray") == told(tmp_path / "local")
    assert {t.device for t in trials_of(tmp_path / "ray") if t.status is Status.OK} == set(cluster.addresses)
    assert {r.device for r in read_journal(tmp_path / "ray") if isinstance(r, DeviceRecord)} == set(cluster.addresses)


@pytest.mark.faults
@pytest.mark.long
def test_a_node_that_is_lost_and_comes_back_costs_no_trial(cluster, tmp_path):
    slow = cluster.folder / "slow"
    slow.touch()
    process = run(cluster, tmp_path / "run", trials=250)
    address = cluster.addresses[1]
    steps = [
        ("trial 10 ", lambda: cluster.kill(1)),
        (f"notice device {address} is left out", lambda: cluster.start(1)),
        (f"notice device {address} takes part", slow.unlink),
    ]
    lines, err = follow(process, steps)
    assert process.returncode == 0, "".join(lines) + err
    trials = trials_of(tmp_path / "run")
    assert len(trials) == len({str(t.schedule) for t in trials}) == 250, "nothing is lost, nothing is there twice"
    assert {t.status for t in trials} <= {Status.OK, Status.BUILD_ERROR}, Counter(t.status for t in trials)
    records = list(read_journal(tmp_path / "run"))
    gone = next(i for i, r in enumerate(records) if isinstance(r, DeviceRecord) and r.left_out)
    back = [r for r in records[gone:] if isinstance(r, DeviceRecord) and not r.left_out]
    assert [r.device for r in back] == [address]
    after = records[records.index(back[0]) :]
    assert {r.device for r in after if isinstance(r, TrialRecord) and r.device} == set(cluster.addresses)


def test_the_command_line_tunes_a_kernel_on_the_cluster(cluster, tmp_path):
    words = ["-m", "autotune", "run", "--op", "softmax", "--shape", "M=64,N=64", "--trials", "6", "--mlflow", "none"]
    site = ["--executor", "ray", "--address", cluster.address]
    out = finish(cluster.popen(*words, *site, "--out", tmp_path / "run", "--quiet"))
    assert "softmax M=64,N=64 float32 for llvm" in out
    trials = trials_of(tmp_path / "run")
    assert len(trials) == 6
    assert {t.device for t in trials if t.device} <= set(cluster.addresses)


@pytest.mark.faults
@pytest.mark.long
def test_a_run_whose_head_is_lost_is_resumed_on_a_new_one(cluster, tmp_path):
    slow = cluster.folder / "slow"
    slow.touch()
    process = run(cluster, tmp_path / "run", trials=60)

    def lose():
        cluster.kill(0)
        cluster.kill(1)

    lines, err = follow(process, [("trial 15 ", lose)])
    assert process.returncode == ExitCode.NO_DEVICE, "".join(lines) + err
    assert "--resume" in err
    assert "Traceback" not in err
    before = trials_of(tmp_path / "run")
    assert 15 <= len(before) < 60
    slow.unlink()
    cluster.start(0)
    cluster.start(1)
    finish(run(cluster, tmp_path / "run", trials=60))
    trials = trials_of(tmp_path / "run")
    assert trials[: len(before)] == before
    assert len(trials) == len({str(t.schedule) for t in trials}) == 60
    assert {t.status for t in trials} <= {Status.OK, Status.BUILD_ERROR}
