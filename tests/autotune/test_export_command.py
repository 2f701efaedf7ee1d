"""`autotune export` on the command line: what it says, what it leaves, how it ends."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.exporting import SIDE_FILE, format_names
from autotune.tuned_log import write_entries
from search_spaces.errors import ExitCode
from search_spaces.registry import load_file

HERE = Path(__file__).parents[2]
tuned = load_file(HERE / "tests" / "support" / "tuned.py")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    pytest.importorskip("triton")
    pytest.importorskip("tvm")
    path = tmp_path_factory.mktemp("log") / "log.json"
    axes = {"M": 64, "N": 128}
    entries = [
        tuned.entry_on(tuned.H200, "softmax", "triton.softmax_rows", axes=axes),
        tuned.entry_on(tuned.H200, "softmax", "triton.softmax_rows", axes={**axes, "M": 128}, foreign=True),
    ]
    write_entries(path, entries)
    return path


def autotune(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "autotune", *map(str, arguments)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_it_says_what_it_wrote_and_what_it_left_out(log, tmp_path):
    done = autotune("export", log, "--format", "triton", "--out", "out", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "exported  softmax M=64,N=128 float16 for cuda -arch=sm_90 on NVIDIA H200" in done.stdout
    assert "left out  softmax M=128,N=128 float16" in done.stdout
    assert "another arch" in done.stdout
    assert "1 files in out" in done.stdout
    assert (tmp_path / "out" / SIDE_FILE).is_file()


def test_its_help_names_every_format(tmp_path):
    said = autotune("export", "--help", folder=tmp_path).stdout
    assert all(f"\n  {name}  " in said for name in format_names())


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        (("LOG", "--format", "tvm", "--out", "out"), ExitCode.NOTHING_VALID, "made by triton, not by TVM"),
        (("nothing.json", "--format", "triton", "--out", "out"), ExitCode.BAD_LOG, "no tuned log at"),
        (("LOG", "--format", "tvn", "--out", "out"), ExitCode.USAGE, "tvn"),
        (("LOG", "--format", "triton", "--out", "file/out"), ExitCode.CANNOT_WRITE, "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_line_and_a_code(log, tmp_path, arguments, code, why):
    (tmp_path / "file").write_text("")
    given = [log if a == "LOG" else a for a in arguments]
    done = autotune("export", *given, folder=tmp_path)
    assert done.returncode == code
    assert why in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]
