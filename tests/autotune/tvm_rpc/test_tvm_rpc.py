"""Searches on a real TVM RPC server behind a real tracker, and what happens when either is lost."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest

from autotune.builders import find_generator
from autotune.cli import main
from autotune.executors.base import Measuring, Site
from autotune.executors.tvm_rpc import TvmRpc, require_fit
from autotune.generators.base import Artifact, Resources
from autotune.journal import FILE, load_runs
from autotune.measurement import Policy, Status
from autotune.runner import Failure
from autotune.tune import Settings, tune
from autotune.tvm_rpc.tracker import Tracker
from autotune.worker import Measure, Prepare
from search_spaces.errors import AutotuneError, NoDevice
from search_spaces.hardware import cpu_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

tvm = pytest.importorskip("tvm")
pytestmark = pytest.mark.slow
HERE = Path(__file__).parents[3]
KEY = "board"
AXES = {"M": 4, "N": 8}


@contextlib.contextmanager
def fleet(count=1):
    """Address of a tracker with `count` servers, and the process that holds them."""
    process = subprocess.Popen(
        [sys.executable, str(HERE / "tests/support/rpc_fleet.py"), KEY, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        port, *servers = map(int, process.stdout.readline().split())
        yield f"127.0.0.1:{port}", servers
    finally:
        children = psutil.Process(process.pid).children(recursive=True)
        process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        for left in (process, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()


@pytest.fixture(scope="module")
def address():
    with fleet() as (found, _):
        yield found


def made_task(operator="softmax", **axes):
    workload = find_operator(operator).workload("llvm", None, **(axes or AXES))
    endless = float("inf")
    return Task(operator, workload, Target("llvm"), cpu_hardware("cpu", 1, 32 << 20, endless, {"float32": endless}))


def site(address, key=KEY):
    return Site("tvm-rpc", address, key=key)


def test_a_search_ends_with_a_verified_winner_of_the_remote_device(address, tmp_path):
    task = made_task(M=64, N=128)
    outcome = tune(task, Settings("random", trials=6, site=site(address)), tmp_path)
    (log,) = load_runs(tmp_path)
    assert len(log.trials) == 6
    assert {m.status for m in log.trials.values()} == {Status.OK}
    assert all(m.error is not None and m.error < 1 for m in log.trials.values())
    assert all(m.phases.build > 0 and m.phases.check > 0 and m.phases.measure > 0 for m in log.trials.values())
    assert log.runs[0].device.name.endswith(f"under TVM RPC key {KEY}")
    assert outcome.race is not None
    assert outcome.entry.raced
    assert not outcome.race.library, "no call here is timed against a kernel there"


@pytest.fixture
def worker(address, tmp_path):
    """A worker with a short patience, its inputs prepared."""
    policy = Policy(run_seconds=4.0, samples=3)
    executor = TvmRpc(site(address), tmp_path)
    (seat,) = executor.seats(Measuring(made_task(), policy))
    seat.runner.send(Prepare(), 120)
    assert not isinstance(seat.runner.answer(), Failure)
    yield seat.runner, policy
    seat.runner.kill()


def kernel(body, folder):
    """An artifact of `main(x, y)` in TVMScript."""
    lines = [
        "from tvm.script import tirx as T",
        "@T.prim_func",
        "def main(x: T.Buffer((4, 8), 'float32'), y: T.Buffer((4, 8), 'float32')):",
        *(f"    {line}" for line in body),
    ]
    # TVMScript reads the source of what it parses.
    path = folder / f"kernel_{abs(hash(tuple(body)))}.py"
    path.write_text("\n".join(lines) + "\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    function = names["main"].with_attr("global_symbol", "main")
    library = path.with_suffix(".so")
    tvm.compile(tvm.IRModule({"main": function}), target="llvm").mod.export_library(str(library))
    return Artifact(str(library), library.stem, Resources())


def measured(worker, artifact):
    runner, policy = worker
    runner.send(Measure(made_task().default, artifact, float("inf")), policy.run_seconds)
    return runner.answer()


def right(tmp_path):
    task = made_task()
    return find_generator("tvm").build(task, task.default, tmp_path)


COPIES = ("for i, j in T.grid(4, 8):", "    y[i, j] = x[i, j]")
WRONG = {
    "deviates": COPIES,
    "not finite": ("y[0, 0] = x[0, 0]",),
    "writes after its output Y": (*COPIES, "y[4, 0] = T.float32(1)"),
    "writes to its input X": (*COPIES, "x[0, 0] = T.float32(1)"),
}


@pytest.mark.parametrize("says", WRONG)
def test_a_wrong_kernel_is_found_here(says, worker, tmp_path):
    answer = measured(worker, kernel(WRONG[says], tmp_path))
    assert answer.status is Status.WRONG_RESULT
    assert says in answer.detail
    assert measured(worker, right(tmp_path)).status is Status.OK, "and the next one is not harmed"


def test_samples_are_the_servers_own(worker, tmp_path):
    answer = measured(worker, right(tmp_path))
    assert len(answer.samples) == 3
    # Sending the arguments there and back alone takes longer.
    assert 0 < float(np.median(answer.samples)) < 1e-3 < answer.phases.measure
    assert answer.deterministic


def test_a_kernel_without_end_costs_its_time_and_not_the_server(worker, tmp_path):
    endless = ("while x[0, 0] > T.float32(-1000):", "    y[0, 0] = y[0, 0] + T.float32(1)")
    runner, _ = worker
    with pytest.raises(TimeoutError):
        measured(worker, kernel(endless, tmp_path))
    runner.send(Prepare(), 120)
    assert not isinstance(runner.answer(), Failure), "the server has ended it and is lent again"
    assert measured(worker, right(tmp_path)).status is Status.OK


def test_a_server_killed_in_a_search_ends_it_with_one_line(tmp_path):
    words = ["run", "--op", "softmax", "--shape", "M=64,N=128", "--executor", "tvm-rpc", "--key", KEY, "--quiet"]
    words += ["--strategy", "random", "--trials", "2000", "--mlflow", "none", "--out", "run", "--jobs", "2"]
    with fleet() as (address, servers):
        run = subprocess.Popen(
            [sys.executable, "-m", "autotune", *words, "--tracker", address],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(HERE)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        journal = tmp_path / "run" / FILE
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and (not journal.exists() or journal.read_text().count('"trial"') < 3):
            time.sleep(0.1)
        for pid in servers:
            server = psutil.Process(pid)
            for process in (server, *server.children(recursive=True)):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
        _, err = run.communicate(timeout=400)
    assert run.returncode == 4, err
    assert "no server under the key" in err
    assert len(err.strip().splitlines()) == 1
    assert len(load_runs(tmp_path / "run")[0].trials) >= 3, "what was measured is kept"


def autotune(monkeypatch, capsys, *arguments):
    monkeypatch.setattr(sys, "argv", ["autotune", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    _, err = capsys.readouterr()
    assert len(err.strip().splitlines()) == 1
    return stop.value.code, err


NAMED = ("run", "--op", "softmax", "--shape", "M=4,N=8", "--executor", "tvm-rpc", "--mlflow", "none")
MISTAKES = {
    "give --tracker HOST:PORT": (2, ("--key", KEY)),
    "no tracker at 'host'": (2, ("--tracker", "host", "--key", KEY)),
    "give --key": (2, ("--tracker", "127.0.0.1:9")),
    "no TVM RPC tracker answers at 127.0.0.1:9": (4, ("--tracker", "127.0.0.1:9", "--key", KEY)),
    "known: board": (4, ("--tracker", "ADDRESS", "--key", "other")),
    "reaches CPUs": (2, ("--tracker", "ADDRESS", "--key", KEY, "--target", "cuda")),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_a_mistake_gets_one_line(says, address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code, more = MISTAKES[says]
    found, err = autotune(monkeypatch, capsys, *NAMED, *(w.replace("ADDRESS", address) for w in more))
    assert (found, says in err) == (code, True), err


def test_what_listens_and_is_no_tracker_is_told(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as other:
        other.listen()
        other.settimeout(30)
        tracker = Tracker.at(f"127.0.0.1:{other.getsockname()[1]}", KEY)
        with pytest.raises(NoDevice, match="no TVM RPC tracker answers"):
            tracker.servers()


def test_a_server_that_others_use_is_waited_for_and_then_given_up(address):
    tracker = Tracker.at(address, KEY)
    held = tracker.lend(60.0, 60.0)
    with pytest.raises(NoDevice, match="none of 1 servers under the key 'board' is free"):
        tracker.lend(60.0, 1.0)
    held.get_function("CloseRPCConnection")()


@pytest.mark.parametrize("port", ["", "0", "65536", "-1", "x"])
def test_addresses_that_cannot_be(port):
    with pytest.raises(AutotuneError, match="give --tracker HOST:PORT"):
        Tracker.at(f"host:{port}", KEY)


class Told:
    """What a server of another processor says."""

    flushes = False

    def __init__(self, cpu, triple):
        self._answers = {"target.llvm_get_system_cpu": cpu, "target.llvm_get_system_triple": triple}

    def told(self, name):
        return self._answers[name]


def test_what_does_not_fit_a_server_is_told_before_a_kernel_ends_it():
    """A kernel built for this machine's processor may hold instructions that another one does not know."""
    triple = tvm.get_global_func("target.llvm_get_system_triple")()
    named = replace(Target("llvm"), arch="alderlake")
    with pytest.raises(NoDevice, match="--target 'llvm -mcpu=alderlake'"):
        require_fit(Told("alderlake", triple), Target("llvm"), cold=False)
    require_fit(Told("alderlake", triple), named, cold=False)
    with pytest.raises(NoDevice, match="the server is sparc"):
        require_fit(Told("v9", "sparc-sun-solaris"), named, cold=False)
    with pytest.raises(NoDevice, match="give --l2 hot"):
        require_fit(Told(None, None), named, cold=True)
    require_fit(Told(None, None), named, cold=False)
