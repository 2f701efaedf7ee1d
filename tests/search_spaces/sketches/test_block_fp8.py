"""The space of products scaled by blocks, where fp8 has tensor cores."""

import math

import numpy as np
import pytest

from search_spaces.hardware import cuda_hardware
from search_spaces.sketches.triton.base import ScalarArgument
from search_spaces.sketches.triton.block_fp8_matmul_sglang import SKETCH as SGLANG
from search_spaces.sketches.triton.block_fp8_matmul_vllm import SKETCH as VLLM
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

OURS = "triton.block_fp8_matmul_tiled"


def task(arch="sm_90", **axes):
    workload = find_operator("block_fp8_matmul").workload("cuda", "bfloat16", **axes)
    return Task("block_fp8_matmul", workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


@pytest.mark.parametrize("arch", ["sm_89", "sm_90", "sm_100", "sm_120"])
@pytest.mark.parametrize("axes", [{}, {"M": 1, "N": 8, "K": 16}, {"M": 100, "N": 999, "K": 517}, {"M": 4096}])
def test_the_default_is_legal_and_features_are_finite(arch, axes):
    made = task(arch, **axes)
    sketch = made.sketches[OURS]
    default = sketch.default(made)
    assert made.space.why_not(default) is None
    rng = np.random.default_rng(0)
    for schedule in (default, made.space.sample(rng)):
        features = made.sketch_of(schedule).derived(made, schedule)
        assert features
        assert all(math.isfinite(value) for value in features.values())
    assert axes or sum(1 for _ in made.space) > 1000


def test_older_architectures_have_no_fp8():
    assert "came with sm_89" in task("sm_80").refusals[OURS]


@pytest.mark.parametrize("sketch", [VLLM, SGLANG], ids=["vllm", "sglang"])
def test_an_engines_integers_are_compiled_as_at_its_own_launch(sketch):
    made = task(M=1, N=2048, K=7168)
    schedule = made.sketches[OURS].default(made)
    launch = sketch.launch(made, schedule)
    scalars = {name: a for name, a in launch.arguments.items() if isinstance(a, ScalarArgument)}
    assert all(argument.specialised for argument in scalars.values())
    folded = {name for name, argument in scalars.items() if argument.folded}
    assert folded == {"M", "stride_ak", "stride_bk", "stride_cn", "stride_As_k", "stride_Bs_k"}
    assert scalars["stride_Bs_n"].value == 56
    assert launch.constants["BLOCK_SIZE_N"] == schedule["block_n"]
    assert launch.constants.get("needs_masking", False) is False
