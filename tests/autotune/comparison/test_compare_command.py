import csv
import json
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from autotune.commands.compare import command
from autotune.comparison.grid import finished
from search_spaces import registry
from search_spaces.errors import AutotuneError, ExitCode, NothingValid


@pytest.fixture
def compare(folder, tmp_path):
    def run(*more, strategies="random,evolutionary,xgb"):
        words = ["--strategies", strategies, "--on", str(folder), "--repeats", "2", "--budgets", "8,24", "--jobs", "2"]
        words += ["--out", str(tmp_path / "out"), *more]
        return CliRunner().invoke(command, words, catch_exceptions=False, standalone_mode=False)

    return run


def test_it_prints_what_a_reader_needs(compare, tmp_path):
    shown = compare().stdout
    for words in ("score P @8", "within 5 % @24", "P on the clock", "mean ranks", "Wilcoxon p, Holm", "exploration"):
        assert words in shown
    assert all(name in shown for name in ("random", "evolutionary", "xgb"))


def test_it_leaves_tables_and_the_whole_as_json(compare, tmp_path):
    printed = json.loads(compare("--json").stdout)
    out = tmp_path / "out"
    kept = json.loads((out / "comparison.json").read_text())
    del printed["date"], kept["date"]
    assert printed == kept
    assert printed["environment"]["python"]
    assert printed["settings"]["seeds"] == [0, 1]
    assert printed["summary"]["xgb"]["within_24"]["value"] <= 1.0
    assert {p["one"] for p in printed["pairs"]} == {"random", "evolutionary"}
    rows = list(csv.DictReader((out / "runs.csv").open()))
    assert len(rows) == 3 * 2 * 2
    assert len(list(csv.DictReader((out / "spaces.csv").open()))) == 3 * 2


def test_one_strategy_is_shown_without_tests(compare):
    shown = compare(strategies="random").stdout
    assert "score P @24" in shown
    assert "mean ranks" not in shown


def test_one_space_has_no_interval_over_spaces_and_one_repeat_none_at_all(folder, tmp_path):
    space = next(iter(sorted(folder.iterdir())))
    words = ["--strategies", "random", "--on", str(space), "--budgets", "8", "--jobs", "1", "--repeats"]
    for repeats, brackets in (("2", "["), ("1", "")):
        words_out = [*words, repeats, "--out", str(tmp_path / repeats)]
        shown = CliRunner().invoke(command, words_out, catch_exceptions=False, standalone_mode=False).stdout
        (row,) = [line for line in shown.splitlines() if line.startswith("random") and "%" in line][:1]
        assert "nan" not in row
        assert "{" not in row
        assert ("[" in row) == bool(brackets)


def test_a_crash_is_told_and_left_out(compare, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from autotune.strategies.random import RandomSearch\nclass Mine(RandomSearch):\n    ask = None\n")
    shown = compare(strategies=f"random,{path}:Mine").stdout
    assert "TypeError" in shown
    with pytest.raises(NothingValid, match="TypeError"):
        compare(strategies=f"{path}:Mine")


def test_ctrl_c_leaves_what_the_same_command_goes_on_from(folder, tmp_path):
    out = tmp_path / "out"
    words = ["--strategies", "random", "--on", str(folder), "--budgets", "16", "--out", str(out), "--jobs", "1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "autotune", "compare", *words, "--repeats", "2000"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not finished(out):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert told.splitlines()[-1] == f"stopped; the same command goes on from what is in {out}"
    kept = finished(out)
    assert kept
    CliRunner().invoke(command, [*words, "--repeats", "2"], catch_exceptions=False, standalone_mode=False)
    assert kept.items() <= finished(out).items()


def test_a_wrong_option_is_one_line(compare):
    with pytest.raises(AutotuneError, match="unknown strategy 'nope'"):
        compare(strategies="nope")
    with pytest.raises(Exception, match="no list of numbers"):
        compare("--budgets", "8,x")


@pytest.mark.skipif(not registry.available("matplotlib"), reason="needs the extra plots")
def test_it_draws_curves_spaces_and_ranks(compare, tmp_path):
    compare()
    for name in ("curves", "spaces", "ranks"):
        words = "".join(ET.parse(tmp_path / "out" / f"{name}.svg").getroot().itertext())
        assert "xgb" in words
        assert (tmp_path / "out" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_it_leaves_a_page(compare, tmp_path):
    shown = compare().stdout
    path = tmp_path / "out" / "comparison.html"
    assert str(path) in shown
    assert "xgb" in path.read_text()


@pytest.mark.skipif(registry.available("matplotlib"), reason="matplotlib is here")
def test_without_matplotlib_it_says_so_in_one_line(compare, tmp_path):
    assert "pip install 'kernel-autotune[plots]'" in compare().stderr
    assert not list((tmp_path / "out").glob("*.svg"))
