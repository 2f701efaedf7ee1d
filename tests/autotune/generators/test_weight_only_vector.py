"""Products of few rows with weights of few bits, built without a GPU: what a code costs, and where the sketch stops."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from autotune.generators.triton import GENERATOR
from search_spaces.hardware import cuda_hardware
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

pytestmark = pytest.mark.skipif(GENERATOR.missing() is not None, reason=str(GENERATOR.missing()))

VECTOR = "triton.weight_only_linear_vector"


def task(rows, dtype="bfloat16", arch="sm_90", **axes):
    workload = find_operator("weight_only_linear").workload("cuda", dtype, M=rows, N=512, K=4096, **axes)
    return Task("weight_only_linear", workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def operations(artifact):
    """How often each operation of the machine is in a binary."""
    from triton import knobs

    cubin = next(Path(artifact.path).glob("*.cubin"))
    shown = subprocess.run(
        [knobs.nvidia.cuobjdump.path, "-sass", str(cubin)], capture_output=True, check=True, text=True
    ).stdout
    names = re.findall(r"/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\d+ )?([A-Z0-9]+)", shown)
    return {name: names.count(name) for name in set(names)}


@pytest.mark.parametrize("rows", [1, 2])
def test_a_code_is_one_logical_operation_and_one_multiply_add_a_row(rows, tmp_path):
    made = task(rows)
    schedule = made.sketches[VECTOR].default(made)
    # All of K is one step: what is in the binary once is done once.
    assert schedule["block_k"] == made.workload["K"]
    codes = schedule.integer("block_n") * made.workload["K"] // (32 * schedule.integer("num_warps"))
    counts = operations(GENERATOR.build(made, schedule, tmp_path))
    assert codes <= counts["LOP3"] <= 1.3 * codes
    assert rows * codes <= counts["FFMA"] <= 1.5 * rows * codes
    assert not {"I2F", "I2FP"} & set(counts)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rows", [1, 4])
def test_defaults_and_random_schedules_keep_their_values_in_registers(rows, bits, tmp_path):
    made = task(rows, bits=bits)
    rng = np.random.default_rng(rows)
    sketch, prefix = made.sketches[VECTOR], Schedule((("sketch", VECTOR),))
    for schedule in (sketch.default(made), *(made.space.sample(rng, prefix) for _ in range(3))):
        used = GENERATOR.build(made, schedule, tmp_path).resources
        assert used.spill_bytes <= 64, str(schedule)
        assert sketch.derived(made, schedule)["shared_bytes"] <= used.shared_bytes, str(schedule)


def test_builds_for_older_gpus(tmp_path):
    made = task(3, arch="sm_80", group=32)
    assert GENERATOR.build(made, made.sketches[VECTOR].default(made), tmp_path).resources.registers > 0


def test_more_rows_and_wider_inputs_are_refused_with_the_reason():
    assert "it takes 4 at most" in task(5).refusals[VECTOR]
    assert "inputs of 16 bits" in task(1, "float32").refusals[VECTOR]
