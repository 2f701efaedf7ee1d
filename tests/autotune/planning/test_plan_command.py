"""`autotune plan`: a table for people, JSON for machines, one line for a mistake."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import main

ROOT = Path(__file__).parents[3]
PLAN = """
title = "two kernels"
targets = ["cuda"]

[[workloads]]
op = "softmax"
dtypes = ["float16"]
shapes = ["M=4096,N=4096", "M=64,N=1024"]
"""


@pytest.fixture
def plan(tmp_path, monkeypatch):
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return ("plan", "plan.toml", "--costs", str(ROOT / "experiments/spaces/h200"))


def told(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["autotune", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr()


def test_as_json(plan, monkeypatch, capsys):
    code, shown = told((*plan, "--devices", "1,2,2,40", "--trials", "64", "--json"), monkeypatch, capsys)
    assert code == 0
    found = json.loads(shown.out)
    assert [w["workload"] for w in found["workloads"]] == [
        "softmax M=4096,N=4096 float16",
        "softmax M=64,N=1024 float16",
    ]
    assert {w["trials"] for w in found["workloads"]} == {64}
    assert all(w["legal_schedules"] > 64 and w["costs"].startswith("softmax__h200") for w in found["workloads"])
    assert [f["devices"] for f in found["fleets"]] == [1, 2, 40]
    one, two, many = (f["seconds"] for f in found["fleets"])
    assert one > two > many > found["overheads"]["start"] + found["overheads"]["final"]
    expected = sum(w["device_seconds"] for w in found["workloads"])
    assert one > expected, "one device does all of it"


def test_as_tables(plan, monkeypatch, capsys):
    code, shown = told((*plan, "--devices", "1000", "--builders", "4"), monkeypatch, capsys)
    assert code == 0
    assert "2 workloads, 1,024 trials" in shown.out
    assert "softmax__h200__" in shown.out, "where the costs are from"
    assert "with 4 builders a device" in shown.out
    assert "waits for" in shown.out


MISTAKES = {
    "experiments/spaces": ("--costs", "nothing"),
    "no recording tells what building": ("--costs", "GEMM"),
    "is no list of numbers of devices": ("--devices", "1,two"),
    "suite plan is for target cuda": ("--target", "llvm"),
    "cannot be read": ("--overheads", "nothing.json"),
}


@pytest.mark.parametrize("says", MISTAKES)
def test_a_mistake_gets_one_line(says, plan, monkeypatch, capsys):
    option, value = MISTAKES[says]
    value = str(ROOT / "experiments/spaces/pnpoly__rtx3090.recording.gz") if value == "GEMM" else value
    arguments = [*(plan if option != "--costs" else plan[:2]), option, value]
    code, shown = told(arguments, monkeypatch, capsys)
    assert code in (2, 5)
    assert "Traceback" not in shown.err
    assert len([line for line in shown.err.strip().splitlines() if not line.startswith("sizing")]) == 1
    assert says in shown.err or option == "--costs"


@pytest.mark.slow
def test_the_plan_that_comes_with_the_project(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "plan", "experiments/llm.toml", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=400,
        check=True,
    )
    found = json.loads(done.stdout)
    assert len(found["workloads"]) > 30
    seconds = [f["seconds"] for f in found["fleets"]]
    assert seconds == sorted(seconds, reverse=True)
