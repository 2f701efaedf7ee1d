"""`autotune bench` as a user meets it: real kernels against real libraries on the CPU at hand."""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from autotune import task_options
from autotune.benchmark import measuring
from autotune.cli import main
from search_spaces.errors import ExitCode

TOY = f"{Path(__file__).parents[2] / 'support' / 'toy.py'}:Toy"
HEAD = 'title = "small"\ntargets = ["llvm"]\n[mark]\nleast = 0.000001\n'


def group(op, *shapes):
    return f'[[workloads]]\nop = "{op}"\nshapes = {json.dumps(shapes)}\n'


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """The command line in this process, in a folder with a suite file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(task_options, "measured_peak", lambda cores: 1e12)
    monkeypatch.setattr(task_options, "measured_bandwidth", lambda: 1e11)
    monkeypatch.setattr(measuring, "ROUND_SECONDS", {"llvm": 0.05})

    def run(text, *more, code=ExitCode.OK):
        Path("small.toml").write_text(HEAD + text)
        words = [
            "bench",
            "small.toml",
            "--trials",
            "4",
            "--strategy",
            "random",
            "--seconds",
            "30",
            "--out",
            "out",
            *more,
        ]
        monkeypatch.setattr(sys, "argv", ["autotune", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert ended.value.code == code, printed.err
        return printed

    return run


def test_a_tuned_kernel_is_held_against_every_library_here(bench, tmp_path):
    pytest.importorskip("tvm")
    printed = bench(group("softmax", "M=32,N=64"), "--json", "--gate").out
    found = json.loads(printed)
    assert found["date"]
    assert found["environment"]["python"]
    (suite,) = found["suites"]
    assert [s["met"] for s in suite["standings"]] == [True]
    (workload,) = suite["workloads"]
    result = workload["result"]
    assert workload["workload"] == "softmax M=32,N=64 float32"
    assert "numpy" in result["rivals"]
    rounds = {len(rival["samples"]) for rival in result["rivals"].values()} | {len(result["samples"])}
    assert len(rounds) == 1
    assert rounds.pop() >= 20
    assert result["error"] <= 1.0
    assert result["schedule"]["sketch"].startswith("tvm.")
    over = workload["over_fastest_library"]
    assert over["low"] <= over["times"] <= over["high"]
    assert workload["fastest_library"] in result["rivals"]
    assert json.loads((tmp_path / "out" / "bench.json").read_text())["suites"] == found["suites"]


def test_the_report_shows_marks_and_what_failed_while_the_rest_goes_on(bench, tmp_path):
    printed = bench(group(TOY, "N=5") + group("no_such_operator", "N=4") + group(TOY, "N=7"))
    for text in (printed.out, (tmp_path / "out" / "bench.md").read_text()):
        assert "toy N=5" in text
        assert "toy N=7" in text
        assert "numpy" in text
        assert "unknown operator 'no_such_operator'" in text
        assert "MISSED" in text
        assert "1 workloads without a figure" in text
    assert "bench.json" in printed.out
    bench(group("no_such_operator", "N=4"), "--gate", code=ExitCode.DOES_NOT_HOLD)


def test_a_picture_has_a_row_a_workload(bench, tmp_path):
    pytest.importorskip("matplotlib")
    bench(group(TOY, "N=5", "N=7"))
    words = "".join(ET.parse(tmp_path / "out" / "bench.svg").getroot().itertext())
    assert "toy N=5" in words
    assert "toy N=7" in words
    assert "small" in words


def test_an_interrupted_benchmark_goes_on_where_it_was(bench, tmp_path, monkeypatch):
    measured, calls = measuring.measured, []

    def interrupted(case, terms):
        calls.append(case.shape)
        if case.shape == "N=7" and calls.count("N=7") == 1:
            raise measuring.Stopped
        return measured(case, terms)

    monkeypatch.setattr("autotune.commands.bench.measured", interrupted)
    suite = group(TOY, "N=5", "N=7")
    printed = bench(suite, code=ExitCode.INTERRUPTED)
    assert "toy N=5" in printed.out
    assert "--out out" in printed.err
    first = (tmp_path / "out" / "cases" / "small--toy-N5.json").read_bytes()
    bench(suite)
    assert calls == ["N=5", "N=7", "N=7"]
    assert (tmp_path / "out" / "cases" / "small--toy-N5.json").read_bytes() == first


def test_a_schedule_can_come_from_a_tuned_log(bench, tmp_path):
    bench(group(TOY, "N=5"))
    log = tmp_path / "out" / "tuned" / "toy-N5" / "tuned-log.json"
    found = json.loads(bench(group(TOY, "N=5"), "--log", str(log), "--json", "--out", "again").out)
    (workload,) = found["suites"][0]["workloads"]
    (entry,) = json.loads(log.read_text())["entries"]
    assert workload["result"]["source"] == str(log)
    assert workload["result"]["schedule"] == entry["schedule"]
    assert workload["result"]["search_seconds"] is None
    assert not (tmp_path / "again" / "tuned").exists()


LYING = """
from autotune.benchmark.libraries.base import Library
import os

class Lying(Library):
    summary, kinds = "two calls that are no use and one that is", ("llvm",)

    def missing(self):
        return None

    def calls(self, task, inputs, outputs):
        def wrong():
            outputs[0][...] = 7.0

        def raising():
            raise RuntimeError("not for this shape")

        return {"wrong": wrong, "raising": raising, "returning": lambda: inputs[0] + 1}

class Dying(Lying):
    def calls(self, task, inputs, outputs):
        os._exit(3)

LIBRARY, DYING = Lying(), Dying()
"""


def test_libraries_that_are_wrong_raise_or_die_take_no_part(bench, tmp_path, monkeypatch):
    (tmp_path / "lying.py").write_text(LYING)
    names = [f"{tmp_path / 'lying.py'}:LIBRARY", f"{tmp_path / 'lying.py'}:DYING", "numpy_calls"]
    monkeypatch.setattr(
        "autotune.commands.bench.library_names", lambda kind, slow: (names, {"helion": "not installed"})
    )
    printed = bench(group(TOY, "N=5"), "--json")
    found = json.loads(printed.out)
    result = found["suites"][0]["workloads"][0]["result"]
    assert set(result["rivals"]) == {"returning", "numpy"}
    assert "tolerance" in result["refused"]["wrong"]
    assert result["refused"]["raising"] == "RuntimeError: not for this shape"
    assert "code 3" in result["refused"][names[1]]
    assert found["absent_libraries"] == {"helion": "not installed"}
    assert "going on without helion" in printed.err
