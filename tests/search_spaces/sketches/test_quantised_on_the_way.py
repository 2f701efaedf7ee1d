"""Activations quantised in the product's kernel: half of a row's largest is a tie, and goes to the even code."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from search_spaces.task import find_operator

ROWS, K = 256, 32


def operands():
    """Rows whose second element is half of the first, the largest; one row of zeros."""
    rng = np.random.default_rng(0)
    a = rng.uniform(-0.4, 0.4, (ROWS, K)).astype(np.float16)
    a[:, 0] = rng.uniform(1.0, 9.0, ROWS)
    a *= (rng.integers(0, 2, (ROWS, 1)) * 2 - 1).astype(np.float16)
    a[:, 1] = a[:, 0] / 2
    a[3] = 0
    b = np.zeros((16, K), np.int8)
    b[:, 1] = 1
    return a, b, np.ones(16, np.float32)


def test_in_the_reference():
    operator = find_operator("int8_dynamic_linear")
    workload = operator.workload("cuda", "float16", M=ROWS, N=16, K=K, bias=0)
    a, b, columns = operands()
    (c,) = operator.reference(workload, np, a.astype(np.float64), b.astype(np.float64), columns.astype(np.float64))
    expected = 64 * a[:, 0].astype(np.float64) / 127
    assert np.allclose(c, expected[:, None], rtol=1e-12, atol=0)


def test_in_the_kernel():
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(Path(__file__).parents[3])}
    run = subprocess.run(
        [sys.executable, __file__], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr


if __name__ == "__main__":
    import torch

    from search_spaces.kernels import dynamic

    a, b, columns = operands()
    c = torch.empty(ROWS, 16, dtype=torch.float32)
    given = (*map(torch.tensor, (a, b)), c, c, torch.tensor(columns), 1, 0, ROWS, 16, K, 64, 16, 32, 1, False, 0)
    dynamic.tiled[(ROWS // 64,)](*given)
    expected = 64 * a[:, 0].astype(np.float64) / 127
    np.testing.assert_allclose(c.numpy(), np.broadcast_to(expected[:, None], c.shape), rtol=1e-6, atol=0)
