"""The experiment that has every consumer use one log: TVM's part here on the CPU, Triton's without a GPU."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.exporting import export
from autotune.recall import recall
from search_spaces.registry import load_file

HERE = Path(__file__).parents[3]
SCRIPT = HERE / "experiments" / "one_log.py"
tuned = load_file(HERE / "tests" / "support" / "tuned.py")


def test_relax_runs_the_schedule_of_the_log(tmp_path):
    pytest.importorskip("tvm")
    words = ("--shape", "M=64,N=96,K=64", "--trials", "3")
    done = subprocess.run(
        [sys.executable, SCRIPT, "found.json", *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert set(found["left_out"]) == {"triton", "inductor"}
    (entry,) = found["entries"]
    relax = found["consumers"]["tvm"]
    assert relax["schedule"] == entry["schedule"]
    assert relax["same_configuration"]
    assert relax["ran"]["scheduled"]
    assert relax["ran"]["loops"]
    assert relax["right"]
    assert len(relax["median_us"]) == 4


def test_triton_says_itself_what_it_launched(tmp_path, monkeypatch):
    pytest.importorskip("triton")
    torch = pytest.importorskip("torch")
    from triton.backends.compiler import GPUTarget
    from triton.runtime.driver import driver

    class NoGpu:
        """A driver that only says what it is for."""

        def get_current_target(self):
            return GPUTarget("cuda", 90, 32)

    script, kernels = load_file(SCRIPT), pytest.importorskip("search_spaces.kernels.matmul")
    entry = tuned.entry_on(tuned.H200, "matmul", "triton.matmul_tiled", axes={"M": 1024, "N": 512, "K": 256}, seed=4)
    export([entry], "triton", tmp_path / "out")
    launched = []
    monkeypatch.setattr(driver, "_active", NoGpu())
    monkeypatch.setattr(kernels.tiled, "run", lambda *_, **given: launched.append(given), raising=False)
    a, b, c = (torch.zeros(shape) for shape in ((1024, 256), (256, 512), (1024, 512)))
    used = script.use_triton(recall(entry), tmp_path / "out", (a, b), (c,))
    assert used.ran == used.tuned
    assert used.ran["BLOCK_M"] == entry.schedule["block_m"]
    assert used.ran["num_warps"] == entry.schedule["num_warps"]
    assert set(kernels.tiled.arg_names) <= set(launched[-1])


def test_inductors_choice_is_read_in_its_code():
    script = load_file(SCRIPT)
    code = """
    @triton_heuristics.template(
        num_stages=4,
        num_warps=8,
    def triton_mm(arg_A, arg_B, out_ptr0):
        EVEN_K : tl.constexpr = True
        GROUP_M : tl.constexpr = 8
        BLOCK_M : tl.constexpr = 128
    """
    names = ("BLOCK_M", "BLOCK_N", "GROUP_M", "num_warps", "num_stages")
    assert script.generated(code, names) == {"BLOCK_M": 128, "GROUP_M": 8, "num_warps": 8, "num_stages": 4}
