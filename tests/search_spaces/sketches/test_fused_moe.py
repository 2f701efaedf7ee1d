"""The space of a mixture of experts: kernels one after the other, and engines' kernels launched as they launch them."""

import math

import numpy as np
import pytest

from search_spaces import installed_text
from search_spaces.hardware import cuda_hardware
from search_spaces.installed_text import source_file
from search_spaces.sketches import engine_moe
from search_spaces.sketches.experts import most_tiles
from search_spaces.sketches.triton.base import ScalarArgument, WorkspaceArgument
from search_spaces.sketches.triton.fused_moe_sglang import SKETCH as SGLANG
from search_spaces.sketches.triton.fused_moe_vllm import SKETCH as VLLM
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

OURS = "triton.fused_moe_tiled"
ODD = {"E": 7, "M": 100, "T": 3, "N": 99, "K": 70}


def task(arch="sm_90", dtype="bfloat16", **axes):
    workload = find_operator("fused_moe").workload("cuda", dtype, **axes)
    return Task("fused_moe", workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def tiled(made, block_m=16):
    """The default with so many rows a tile, whether or not that is legal."""
    default = made.sketches[OURS].default(made)
    return Schedule(tuple((k, block_m if k == "block_m" else v) for k, v in default.items))


@pytest.fixture(params=[VLLM, SGLANG], ids=["vllm", "sglang"])
def engine(request):
    if request.param.missing() is not None:
        pytest.skip(request.param.missing())
    return request.param


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("axes", [{}, {"E": 1, "M": 1, "T": 1, "N": 8, "K": 16}, {"E": 256, "M": 4096}, ODD])
def test_the_default_is_legal_and_features_are_finite(arch, dtype, axes):
    made = task(arch, dtype, **axes)
    for sketch in made.sketches.values():
        default = sketch.default(made)
        assert made.space.why_not(default) is None
        for schedule in (default, made.space.sample(np.random.default_rng(0), Schedule((("sketch", sketch.name),)))):
            features = sketch.derived(made, schedule)
            assert {"log2_steps", "down_log2_steps"} <= set(features)
            assert all(math.isfinite(value) for value in features.values())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_space_is_worth_searching(arch):
    assert 10_000 <= task(arch).space.size(np.random.default_rng(0)).legal <= 1_000_000


@pytest.mark.parametrize(
    ("counts", "rows"), [((5, 0, 17, 2), 16), ((1, 1, 1, 1), 16), ((24, 0, 0, 0), 16), ((16, 16, 16, 16), 16)]
)
def test_no_choices_fill_more_tiles_than_there_is_room_for(counts, rows):
    made = task(E=4, M=sum(counts), T=1)
    assert sum(math.ceil(count / rows) for count in counts) <= most_tiles(made, rows)
    assert most_tiles(task(E=4, M=4, T=1), 16) == 4
    assert most_tiles(task(E=4, M=61, T=1), 16) == 7


def test_what_one_kernel_leaves_is_where_the_next_looks_for_it():
    made = task(**ODD)
    launches = made.sketches[OURS].launches(made, tiled(made))
    assert [launch.kernel.rpartition(":")[2] for launch in launches] == ["sort", "", "down", "total"]
    spaces = [{a.name: a for a in launch.arguments.values() if isinstance(a, WorkspaceArgument)} for launch in launches]
    assert [set(found) for found in spaces] == [
        {"rows", "experts", "used"},
        {"rows", "experts", "used", "hidden"},
        {"rows", "experts", "used", "hidden", "terms"},
        {"terms"},
    ]
    sizes = {name: {found[name] for found in spaces if name in found} for name in ("rows", "hidden", "terms")}
    assert all(len(alike) == 1 for alike in sizes.values())
    assert {name: next(iter(alike)).elements for name, alike in sizes.items()} == {
        "rows": 16 * most_tiles(made, 16),
        "hidden": 300 * 99,
        "terms": 300 * 70,
    }


def test_an_engines_integers_are_compiled_as_at_its_own_launch(engine):
    made = task(E=8, M=64, T=2, N=96, K=128)
    schedule = made.sketches[engine.name].default(made)
    before, up, between, down, after = engine.launches(made, schedule)
    for launch in (up, down):
        scalars = {name: a for name, a in launch.arguments.items() if isinstance(a, ScalarArgument)}
        assert all(argument.specialised for argument in scalars.values())
        assert {n for n, a in scalars.items() if a.folded} == {"stride_ak", "stride_bk", "stride_cn"}
        assert list(launch.constants).index("BLOCK_SIZE_M") < list(launch.constants).index("compute_type")
    wanted = {"N": (192, 128), "K": (128, 96), "stride_be": (192 * 128, 128 * 96), "stride_cm": (192, 128)}
    assert {n: (up.arguments[n].value, down.arguments[n].value) for n in wanted} == wanted
    assert (up.constants["top_k"], down.constants["top_k"]) == (2, 1)
    assert (up.constants["MUL_ROUTED_WEIGHT"], down.constants["MUL_ROUTED_WEIGHT"]) == (False, True)
    assert [launch.kernel.rpartition(":")[2] for launch in (before, between, after)] == ["sort", "gated", "total"]


def test_vllm_sorts_no_choices_where_there_are_few(engine):
    few, more = task(E=128, M=4, T=8, N=96, K=128), task(E=128, M=5, T=8, N=96, K=128)
    kinds = {}
    for made in (few, more):
        schedule = made.sketches[engine.name].default(made)
        before, up, *_ = engine.launches(made, schedule)
        kinds[made.workload["M"]] = before.kernel.rpartition(":")[2], up.constants.get("naive_block_assignment", False)
        if before.kernel.endswith("count"):
            assert up.constants["sorted_token_ids_ptr"] is None
            assert before.constants["ROWS"] == 32 * schedule.integer("block_m") == up.arguments["EM"].value
    assert kinds[5] == ("sort", False)
    assert kinds[4] == (("count", True) if engine is VLLM else ("sort", False))


def test_float32_and_versions_of_another_kind_are_refused(engine, monkeypatch):
    assert "in tf32" in task(dtype="float32").refusals[engine.name]
    of_today = installed_text.parameters_of
    monkeypatch.setattr(
        engine_moe, "parameters_of", lambda *names: {**of_today(*names), "NEW_MODE": installed_text.REQUIRED}
    )
    assert "not known here: NEW_MODE" in task().refusals[engine.name]
    monkeypatch.setattr(engine_moe, "parameters_of", lambda *names: {**of_today(*names), "NEW_MODE": False})
    made = task()
    assert engine.launch(made, made.sketches[engine.name].default(made)).constants["NEW_MODE"] is False


def test_parameters_are_read_without_running_anything(tmp_path, monkeypatch):
    package = tmp_path / "a_package_with_a_kernel"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "some.py").write_text("@jit\ndef kernel(a, b: int, c=None, d: bool = False):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert source_file(package.name, "some.py") is not None
    found = installed_text.parameters_of(package.name, "some.py", "kernel")
    assert found == {"a": installed_text.REQUIRED, "b": installed_text.REQUIRED, "c": None, "d": False}
