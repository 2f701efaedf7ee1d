"""Convolution: what the operator allows, and how its sketches cut it into tiles."""

import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from search_spaces.errors import InvalidWorkload
from search_spaces.hardware import cuda_hardware
from search_spaces.space import Family, Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

CONV = find_operator("conv2d")
PIXELS, BOXES, ROLES = (f"triton.conv2d_{name}" for name in ("pixels", "boxes", "warpgroups"))


def task(arch="sm_90", dtype="float16", **axes):
    return Task("conv2d", CONV.workload("cuda", dtype, **axes), Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def changed(schedule, **knobs):
    return Schedule(tuple((k, knobs.get(k, v)) for k, v in schedule.items))


@pytest.mark.parametrize(
    ("axes", "reason"),
    [({"H": 4, "W": 9, "R": 7, "pad": 1}, "larger than the padded input"), ({"R": 3, "pad": 3}, "nothing but zeros")],
)
def test_what_is_no_convolution_is_refused(axes, reason):
    with pytest.raises(InvalidWorkload, match=reason):
        CONV.workload("llvm", **axes)


@pytest.mark.parametrize(
    ("axes", "extents"),
    [
        ({"H": 224, "W": 224, "R": 7, "stride": 2, "pad": 3}, (112, 112)),
        ({"H": 56, "W": 55, "R": 3, "stride": 2, "pad": 1}, (28, 28)),
        ({"H": 56, "W": 30, "R": 1, "stride": 1, "pad": 0}, (56, 30)),
    ],
)
def test_the_output_is_as_large_as_torch_makes_it(axes, extents):
    assert CONV.extents(CONV.workload("cuda", **axes)) == extents


@pytest.mark.parametrize("nchw", [0, 1])
@pytest.mark.parametrize(("stride", "pad"), [(1, 0), (2, 1), (3, 2)])
def test_the_reference_is_a_convolution(nchw, stride, pad):
    torch = pytest.importorskip("torch")
    workload = CONV.workload("llvm", N=2, C=3, K=4, H=9, W=8, R=3, stride=stride, pad=pad, nchw=nchw)
    rng = np.random.default_rng(0)
    x, f = (rng.standard_normal(t.shape) for t in CONV.tensors(workload)[:2])
    (y,) = CONV.reference(workload, np, x, f)
    given = [torch.from_numpy(a if nchw else np.moveaxis(a, 3, 1).copy()) for a in (x, f)]
    right = torch.nn.functional.conv2d(*given, stride=stride, padding=pad).numpy()
    np.testing.assert_allclose(y if nchw else np.moveaxis(y, 3, 1), right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("case", "sketch", "reason"),
    [
        ({"arch": "sm_80"}, BOXES, "TMA"),
        ({"arch": "sm_100"}, ROLES, "wgmma"),
        ({"nchw": 1}, BOXES, "come last"),
        ({"C": 3}, ROLES, "16 bytes"),
        ({"H": 57, "stride": 2}, BOXES, "does not divide"),
        ({"dtype": "float32"}, ROLES, "triton.conv2d_pixels takes it"),
    ],
)
def test_refusals_name_their_reason(case, sketch, reason):
    assert reason in task(**case).refusals[sketch]


def test_few_channels_and_channels_first_are_walked_as_they_lie_in_the_filters():
    assert task(C=3).sketches[PIXELS].default(task(C=3))["walk"] == "terms"
    assert task(nchw=1).default["walk"] == "terms"
    assert task().sketches[PIXELS].default(task())["walk"] == "places"


@pytest.mark.parametrize("sketch", [PIXELS, BOXES, ROLES])
def test_every_sketch_has_the_families_that_users_look_for(sketch):
    families = {knob.family for knob in task().space.sketch(sketch).knobs}
    assert {Family.TILE_SIZES, Family.LOOP_ORDER, Family.SHARED_MEMORY} <= families


@pytest.mark.parametrize("axes", [{}, {"H": 14, "W": 10}, {"H": 14, "W": 14, "stride": 2}, {"R": 1, "pad": 0}])
def test_tiles_cover_the_output(axes):
    made = task(**axes)
    p, q = CONV.extents(made.workload)
    for name, boxes in ((BOXES, 1), (ROLES, 2)):
        sketch = made.sketches[name]
        schedule = changed(sketch.default(made), persistent=False)
        pixels = boxes * math.prod(schedule.integer(knob) for knob in sketch.tall_knobs)
        outputs = sketch.launch(made, schedule).grid[0] * pixels * schedule.integer("block_n")
        assert outputs >= made.workload["N"] * p * q * made.workload["K"]


def test_single_pixels_are_one_long_row():
    made = task(R=1, pad=0)
    x = made.sketches[BOXES].arguments(made, made.sketches[BOXES].default(made))["x"]
    assert x.shape == (1, 1, 1, 32 * 56 * 56, 64)
    assert x.block == (1, 1, 1, 128, 64)


def test_a_stride_is_an_axis_of_the_input():
    made = task(C=128, stride=2)
    x = made.sketches[BOXES].arguments(made, made.sketches[BOXES].default(made))["x"]
    assert x.shape == (32, 28, 2, 28, 256)
    assert math.prod(x.shape) == math.prod(CONV.tensors(made.workload)[0].shape)


def test_steps_do_not_reach_into_the_next_pixel_where_strides_are_an_axis():
    made = task(C=96, stride=2)
    default = made.sketches[BOXES].default(made)
    assert default["block_k"] == 32
    assert "next pixel" in made.space.why_not(changed(default, block_k=64))


def test_boxes_are_multiplied_from_where_they_were_copied_to(tmp_path):
    triton = pytest.importorskip("triton")
    from autotune.generators.triton import GENERATOR

    made = task(N=2, H=14, W=14)
    built = GENERATOR.build(made, made.sketches[ROLES].default(made), tmp_path)
    assert built.resources.spill_bytes == 0
    cubin = next(Path(built.path).glob("*.cubin"))
    tool = triton.knobs.nvidia.cuobjdump.path
    told = subprocess.run([tool, "-sass", str(cubin)], capture_output=True, text=True, check=True).stdout
    # The first operand of a product is a descriptor of shared memory, not a register.
    products = re.findall(r"HGMMA\S+ R\d+, (\w+)", told)
    assert products
    assert set(products) == {"gdesc"}
