"""The Triton sketches' spaces: defaults, knob families, sizes, refusals, features."""

import sys

import numpy as np
import pytest

from search_spaces.hardware import cuda_hardware
from search_spaces.space import Family, Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

ARCHS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
SHAPES = {
    "matmul": (
        {},
        {"M": 1, "N": 8, "K": 16},
        {"M": 64, "N": 40, "K": 72, "trans_b": 1},
        {"M": 1000, "N": 999, "K": 517},
        {"M": 16, "N": 4096, "K": 14336},
    ),
    "gated_linear": ({}, {"M": 1, "N": 8, "K": 16}, {"M": 100, "N": 999, "K": 517}),
    "batched_matmul": ({}, {"B": 1, "M": 1, "N": 8, "K": 16}, {"B": 7, "M": 100, "N": 999, "K": 517}),
    "int8_linear": ({}, {"M": 1, "N": 8, "K": 16}, {"M": 64, "N": 4096, "K": 4096}, {"M": 100, "N": 999, "K": 517}),
    "int8_dynamic_linear": (
        {},
        {"M": 1, "N": 8, "K": 16},
        {"M": 64, "N": 4096, "K": 4096},
        {"M": 100, "N": 999, "K": 517},
    ),
    "weight_only_linear": (
        {},
        {"M": 1, "N": 8, "K": 128},
        {"M": 64, "bits": 8, "group": 32},
        {"M": 1000, "N": 999, "K": 512, "group": 64},
    ),
    "grouped_matmul": (
        {},
        {"E": 1, "M": 1, "T": 1, "N": 8, "K": 16},
        {"E": 256, "M": 16, "T": 8},
        {"E": 7, "M": 100, "T": 3, "N": 999, "K": 517},
    ),
    "linear": ({}, {"M": 1, "N": 8, "K": 16}, {"M": 64, "N": 4096, "K": 4096, "residual": 1}),
    "softmax": ({}, {"M": 1, "N": 1}, {"M": 5, "N": 333}, {"M": 8, "N": 262144}, {"M": 77, "N": 30000}),
    "rms_norm": ({}, {"M": 1, "N": 1}, {"M": 5, "N": 333, "residual": 1}, {"M": 8, "N": 262144}, {"residual": 1}),
    "reduce": ({}, {"M": 1, "N": 1}, {"M": 5, "N": 333, "maximum": 1}, {"M": 8, "N": 262144}, {"M": 77, "N": 30000}),
    "argmax": ({}, {"M": 1, "N": 1}, {"M": 5, "N": 333}, {"M": 8, "N": 262144}, {"M": 77, "N": 30000}),
    "elementwise": ({}, {"M": 1, "N": 1}, {"M": 5, "N": 333}, {"M": 8, "N": 262144}),
    "transpose": ({}, {"B": 1, "M": 1, "N": 1}, {"B": 3, "M": 5, "N": 333}, {"B": 64, "M": 1024, "N": 1000}),
    "layer_norm": ({}, {"M": 1, "N": 1}, {"M": 5, "N": 333}, {"M": 8, "N": 262144}, {"M": 77, "N": 30000}),
    "attention": (
        {},
        {"B": 1, "H": 1, "S": 1, "D": 16},
        {"H": 8, "G": 2, "S": 1000, "D": 64, "causal": 0},
        {"S": 512, "D": 256},
        {"S": 512, "D": 96},
    ),
    "attention_window": (
        {},
        {"B": 1, "H": 1, "S": 1, "D": 16, "W": 5},
        {"H": 8, "G": 2, "S": 1000, "D": 96, "W": 33},
    ),
    "masked_softmax": ({}, {"M": 1, "N": 1}, {"M": 6, "N": 333, "S": 3, "causal": 0}),
    "conv2d": (
        {},
        {"N": 1, "C": 1, "K": 1, "H": 1, "W": 1, "R": 1, "pad": 0},
        {"C": 3, "H": 224, "W": 224, "R": 7, "stride": 2, "pad": 3},
        {"C": 512, "K": 2048, "H": 7, "W": 7, "R": 1, "pad": 0},
        {"C": 100, "K": 40, "H": 30, "W": 14, "stride": 2, "nchw": 1},
    ),
    "attention_decode": (
        {},
        {"B": 1, "H": 1, "S": 1, "D": 16},
        {"B": 1, "H": 32, "G": 32, "S": 100_000},
        {"H": 40, "G": 8, "T": 3, "S": 1000, "D": 96},
    ),
    "attention_paged": (
        {},
        {"B": 1, "H": 1, "S": 1, "D": 16},
        {"B": 1, "H": 32, "G": 32, "S": 100_000, "page": 64},
        {"H": 40, "G": 8, "T": 3, "S": 1000, "D": 96},
    ),
}
CASES = [(operator, axes) for operator, shapes in SHAPES.items() for axes in shapes]


def task(operator, arch, dtype="float16", **axes):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    return Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize(("operator", "axes"), CASES)
def test_the_default_is_legal_wherever_the_sketch_applies(operator, axes, dtype, arch):
    made = task(operator, arch, dtype, **axes)
    for sketch in made.sketches.values():
        default = sketch.default(made)
        assert default is not None, sketch.name
        assert made.space.why_not(default) is None
        launch = sketch.launch(made, default)
        assert all(size >= 1 for size in launch.grid)


@pytest.mark.parametrize("operator", list(SHAPES))
def test_the_families_users_look_for_are_there(operator):
    made = task(operator, "sm_80")
    families = {knob.family for space in made.space.sketches for knob in space.knobs}
    assert {Family.TILE_SIZES, Family.VECTOR_WIDTH, Family.LOOP_ORDER, Family.SHARED_MEMORY, Family.WARPS} <= families


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("operator", list(SHAPES))
def test_a_space_is_worth_searching_and_not_boundless(operator, arch):
    size = task(operator, arch).space.size(np.random.default_rng(0))
    assert 1_000 <= size.legal <= 1_000_000
    assert size.rejected


@pytest.mark.parametrize(
    ("case", "sketch", "reason"),
    [
        (("matmul", "sm_80", "float16", {}), "triton.matmul_tma", "TMA"),
        (("matmul", "sm_90", "float32", {}), "triton.matmul_persistent", "float32"),
        (("matmul", "sm_90", "float16", {"N": 999}), "triton.matmul_tma", "16 bytes"),
        (("attention", "sm_86", "float16", {}), "triton.attention_descriptors", "TMA"),
        (("attention", "sm_90", "float32", {}), "triton.attention_descriptors", "float32"),
        (("softmax", "sm_90", "float16", {"N": 100_000}), "triton.softmax_rows", "registers"),
        (("softmax", "sm_90", "float16", {"N": 512}), "triton.softmax_online", "registers"),
        (("rms_norm", "sm_90", "float16", {"N": 100_000}), "triton.rms_norm_looped", "registers"),
        (("layer_norm", "sm_90", "float16", {"N": 512}), "triton.layer_norm_pieces", "registers"),
    ],
)
def test_refusals_name_their_reason(case, sketch, reason):
    operator, arch, dtype, axes = case
    assert reason in task(operator, arch, dtype, **axes).refusals[sketch]


def test_a_cpu_target_is_refused():
    workload = find_operator("matmul").workload("llvm")
    made = Task("matmul", workload, Target("llvm"), cuda_hardware("sm_80"), ("triton.",))
    assert not made.sketches
    assert all("CUDA" in reason for reason in made.refusals.values())


def test_what_no_device_could_hold_is_refused_for_free():
    made = task("matmul", "sm_86")
    tile = {"block_m": 256, "block_n": 256, "block_k": 128, "num_warps": 8, "num_stages": 5, "store_vector": 8}
    reason = made.space.why_not(
        Schedule((("sketch", "triton.matmul_tiled"), *tile.items(), ("order", "rows"), ("group", 1)))
    )
    assert "registers" in reason
    small = Schedule(
        (("sketch", "triton.matmul_tiled"), *(tile | {"block_n": 128}).items(), ("order", "rows"), ("group", 1))
    )
    assert "shared memory" in made.space.why_not(small)


@pytest.mark.parametrize(("operator", "axes"), CASES)
def test_features_have_the_same_names_and_are_finite(operator, axes):
    made = task(operator, "sm_90", **axes)
    rng = np.random.default_rng(1)
    for sketch in made.sketches.values():
        prefix = Schedule((("sketch", sketch.name),))
        features = [sketch.derived(made, made.space.sample(rng, prefix)) for _ in range(5)]
        assert all(list(f) == list(features[0]) for f in features)
        assert all(np.isfinite(v) for f in features for v in f.values())


def test_sketches_import_no_compiler():
    for name, sketch in task("matmul", "sm_90").sketches.items():
        module = sys.modules[type(sketch).__module__]
        assert not {"triton", "torch"} & set(vars(module)), name


def test_a_kernels_functions_from_other_files_define_its_sketch_too():
    sketch = task("reduce", "sm_90", M=16, N=1 << 20).sketches["triton.reduce_pieces"]
    assert {"reduce.py", "split.py", "matmul.py", "epilogue.py"} <= {path.name for path in sketch.sources()}
    assert len(sketch.sources()) == len(set(sketch.sources()))


def test_a_sketch_names_every_file_that_defines_it():
    sketch = task("matmul", "sm_90").sketches["triton.matmul_persistent"]
    names = [path.name for path in sketch.sources()]
    assert {"matmul.py", "matmul_persistent.py", "matmul_tma.py", "matmul_tiled.py", "tiles.py"} <= set(names)
    assert all(path.is_file() for path in sketch.sources())
