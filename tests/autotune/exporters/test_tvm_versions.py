"""One log exported with other versions of TVM: each opens, compiles and runs its own database.

Environments of other versions are named by AUTOTUNE_TEST_TVM, interpreters separated as in PATH;
experiments/tvm_versions.py says what they hold.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.tuned_log import write_entries
from search_spaces.registry import load_file

pytest.importorskip("tvm")
ROOT = Path(__file__).parents[3]
tuned = load_file(ROOT / "tests" / "support" / "tuned.py")
# What an experiment imports from beside itself.
sys.path.append(str(ROOT / "experiments"))
check = load_file(ROOT / "experiments" / "tvm_versions.py")
OTHERS = list(filter(None, os.environ.get("AUTOTUNE_TEST_TVM", "").split(os.pathsep)))


@pytest.fixture
def log(tmp_path):
    cases = [
        ("matmul", "tvm.matmul_packed", {"M": 64, "N": 96, "K": 128}),
        ("softmax", "tvm.metaschedule", {"M": 32, "N": 64}),
        ("layer_norm", "tvm.untuned", {"M": 32, "N": 64}),
    ]
    write_entries(tmp_path / "log.json", [tuned.entry_on(tuned.CPU, op, only, axes=axes) for op, only, axes in cases])
    return tmp_path / "log.json"


def test_a_consumer_that_knows_only_tvm_runs_what_was_tuned(log, tmp_path):
    folders = check.exported(sys.executable, log, tmp_path / "out")
    done = subprocess.run(
        [sys.executable, check.CONSUMER, *folders], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    said = check.summary(json.loads(done.stdout.splitlines()[-1]))
    assert said["records"] == said["run"] == 6
    assert said["largest_difference"] < 1e-4


@pytest.mark.slow
@pytest.mark.skipif(not OTHERS, reason="AUTOTUNE_TEST_TVM names no interpreter with another TVM")
@pytest.mark.parametrize("python", OTHERS)
def test_another_tvm_makes_the_same_traces_and_runs_them(python, log, tmp_path):
    here, there = (
        check.consumed(p, check.exported(p, log, tmp_path / f"out{i}")) for i, p in enumerate((sys.executable, python))
    )
    assert here["tvm"] != there["tvm"]
    assert check.summary(there)["largest_difference"] < 1e-4
    assert check.traces(here) == check.traces(there)
