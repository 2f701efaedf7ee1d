"""`autotune bench` on a GPU: which libraries take part, and that the copy is the yardstick of what memory binds."""

import json
import os
import subprocess
import sys

import pytest

from autotune.devices.cuda import cuda_info

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(cuda_info() is None, reason="no CUDA device")]

SUITE = """
title = "small"
targets = ["cuda"]
[mark]
least = 0.01
copy_share = 0.01
copy_from_mib = 1
[[workloads]]
op = "matmul"
dtypes = ["float16"]
shapes = ["M=512,N=512,K=512"]
[[workloads]]
op = "attention"
dtypes = ["float16"]
shapes = ["B=1,H=4,S=512,D=64,causal=1"]
[[workloads]]
op = "reduce"
dtypes = ["float16"]
shapes = ["M=1024,N=4096"]
"""
EXPECTED = (
    {"cuBLAS", "cuBLAS through cuBLASLt"},
    {"SDPA FlashAttention"},
    {"torch"},
)


HELIONS = """
title = "small"
targets = ["cuda"]
[mark]
least = 0.01
[[workloads]]
op = "softmax"
dtypes = ["float16"]
shapes = ["M=256,N=512"]
"""


def benched(folder, suite, *words):
    """The one suite's results."""
    (folder / "small.toml").write_text(suite)
    common = ("small.toml", "--target", "cuda", "--trials", "8", "--seconds", "60", "--out", "out", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "bench", *common, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    (found,) = json.loads(done.stdout)["suites"]
    return found


def test_every_library_of_the_gpu_takes_part(tmp_path):
    suite = benched(tmp_path, SUITE, "--gate")
    assert all(standing["met"] for standing in suite["standings"])
    for workload, expected in zip(suite["workloads"], EXPECTED, strict=True):
        result = workload["result"]
        assert expected <= set(result["rivals"]), result["refused"]
        assert result["error"] <= 1.0
        assert 0.0 < workload["mfu"] < 1.0
    reduce = suite["workloads"][-1]
    assert reduce["copy_bytes_per_second"] > 1e11
    assert 0.0 < reduce["share_of_copy"] < 1.5


@pytest.mark.slow
def test_helion_searches_in_the_process_that_measures(tmp_path):
    pytest.importorskip("helion")
    (workload,) = benched(tmp_path, HELIONS, "--compile")["workloads"]
    assert "Helion, quick effort" in workload["result"]["rivals"], workload["result"]["refused"]
