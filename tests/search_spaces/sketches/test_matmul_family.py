"""The sketches of matrix products: where each applies, how K is shared, what follows the product, narrow operands."""

import math
import re
import subprocess

import numpy as np
import pytest

from autotune.generators import triton as triton_generator
from search_spaces.hardware import cuda_hardware
from search_spaces.sketches.promotion import LONGEST
from search_spaces.sketches.tiles import warp_group_product
from search_spaces.sketches.triton.base import DescriptorArgument, TensorArgument, WorkspaceArgument
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

DECODE = {"M": 16, "N": 14336, "K": 4096}


def task(operator, arch="sm_90", dtype="bfloat16", **axes):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    return Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def changed(schedule, **knobs):
    return Schedule(tuple((k, knobs.get(k, v)) for k, v in schedule.items))


def sampled(made, sketch, count=40):
    rng = np.random.default_rng(0)
    return [made.space.sample(rng, Schedule((("sketch", sketch),))) for _ in range(count)]


def on_wgmma(made, schedule):
    rows = schedule["block_n"] if schedule.knobs.get("swapped") else schedule["block_m"]
    return warp_group_product(
        made.hardware.limits, made.operator.arithmetic(made.workload), rows, schedule["num_warps"]
    )


@pytest.mark.parametrize(
    ("operator", "case", "sketch", "reason"),
    [
        ("matmul", {}, "matmul_k_split", "enough to share no sums"),
        ("matmul", {"arch": "sm_80", **DECODE}, "matmul_k_shares", "TMA"),
        ("matmul", {"N": 1001, "trans_b": 1}, "matmul_tma", "N=1001"),
        ("matmul", {"K": 1001, "trans_b": 1}, "matmul_tma", "K=1001"),
        ("batched_matmul", {"M": 100}, "batched_matmul_tma", "next matrix"),
        ("batched_matmul", {"K": 40}, "batched_matmul_persistent", "next matrix"),
        ("int8_linear", {"arch": "sm_75"}, "int8_linear_tiled", "sm_80"),
        ("fp8_linear", {"arch": "sm_86"}, "fp8_linear_tiled", "sm_89"),
        ("fp8_linear", {"K": 1000}, "fp8_linear_tma", "16 bytes"),
        ("fp8_linear", {"dtype": "float32"}, "fp8_linear_persistent", "14 bits"),
        ("gated_linear", {"dtype": "float32"}, "gated_linear_persistent", "float32"),
    ],
)
def test_refusals_name_their_reason(operator, case, sketch, reason):
    assert reason in task(operator, **case).refusals[f"triton.{sketch}"]


def test_narrow_operands_with_a_wide_output_are_no_exact_float32():
    assert "triton.int8_linear_tma" in task("int8_linear", dtype="float32").sketches


@pytest.mark.parametrize("operator", ["matmul", "linear", "int8_linear", "fp8_linear"])
def test_the_default_for_few_rows_keeps_every_multiprocessor_busy(operator):
    for arch in ("sm_89", "sm_90"):
        made = task(operator, arch, **DECODE)
        assert "_k_sh" in made.default.sketch or "_k_split" in made.default.sketch
        launch = made.sketch_of(made.default).launch(made, made.default)
        assert math.prod(launch.grid) >= made.hardware.model.sms


@pytest.mark.parametrize("arch", ["sm_89", "sm_90"])
def test_a_space_of_fp8_is_worth_searching(arch):
    assert 1_000 <= task("fp8_linear", arch).space.size(np.random.default_rng(0)).legal <= 1_000_000


def test_long_sums_of_fp8_are_promoted_where_wgmma_cuts_them_and_nowhere_else():
    made = task("fp8_linear", M=4096, N=4096, K=4096)
    seen = set()
    for name, sketch in made.sketches.items():
        default = sketch.default(made)
        if name == "triton.fp8_linear_warpgroups":
            continue
        assert sketch.launch(made, default).constants["PROMOTE"] == default["promote"] == 128
        for schedule in sampled(made, name):
            assert schedule["promote"] <= schedule["block_k"]
            assert not schedule["promote"] or on_wgmma(made, schedule)
            seen.add(schedule["promote"])
    assert seen == {0, 32, 64, 128, 256}
    for other in (task("fp8_linear", "sm_89"), task("int8_linear"), task("linear")):
        assert "promote" not in other.default.knobs
        assert other.sketch_of(other.default).launch(other, other.default).constants.get("PROMOTE", 0) == 0


@pytest.mark.parametrize("rows", [1, 16, 64, 4096])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_every_default_of_fp8_is_precise(rows, dtype):
    made = task("fp8_linear", dtype=dtype, M=rows, N=14336, K=4096)
    for sketch in made.sketches.values():
        schedule = sketch.default(made)
        written_as_wgmma = sketch.name == "triton.fp8_linear_warpgroups"
        assert not (written_as_wgmma or on_wgmma(made, schedule)) or 0 < schedule["promote"] <= LONGEST // 2


def test_sums_that_wait_for_their_promotion_take_registers():
    made = task("fp8_linear", M=4096, N=4096, K=4096)
    default = made.sketches["triton.fp8_linear_tma"].default(made)
    used = [made.sketch_of(s).derived(made, s)["registers"] for s in (default, changed(default, promote=0))]
    assert used == [128.0, 64.0]


@pytest.mark.parametrize("name", ["fp8_linear_tma", "fp8_linear_tiled", "fp8_linear_k_split"])
def test_the_compiled_kernel_adds_its_sums_as_often_as_it_promotes_them(name, tmp_path):
    triton = pytest.importorskip("triton")
    made = task("fp8_linear", M=64, N=256, K=1024, bias=0)
    default = made.sketches[f"triton.{name}"].default(made)
    found = {}
    for terms in (0, 64, 128):
        schedule = changed(default, block_m=64, block_n=64, block_k=128, num_warps=4, promote=terms)
        schedule = changed(schedule, split_k=1, swapped=False)
        launch = made.sketch_of(schedule).launch(made, schedule)
        source = triton_generator._source(made, schedule, launch)
        compiled = triton_generator._compile(made, source, launch, tmp_path, binary_only=False)
        assert compiled.asm["ptx"].count("wgmma.mma_async") == 4
        found[terms] = len(re.findall(r"\badd\.(?:rn\.)?f32", compiled.asm["ptx"]))
    # Triton's PTX adds sums that it has not waited for; ptxas sees it and waits.
    cubin = tmp_path / "kernel.cubin"
    cubin.write_bytes(compiled.kernel)
    command = [triton.knobs.nvidia.cuobjdump.path, "-sass", str(cubin)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    order = re.findall(r"GMMA(?=\.)|DEPBAR\.LE\S* gsb0, 0x0|FADD", text)
    first = order.index("FADD")
    assert order[first - 1].startswith("DEPBAR")
    assert order[:first].count("GMMA") == 4
    # 64 x 64 sums in 128 threads, each added after 128 terms or twice in them.
    assert found[128] - found[0] == 32
    assert found[64] - found[0] == 64


def test_every_piece_of_k_has_steps():
    made = task("matmul", M=16, N=4096, K=1000)
    for schedule in sampled(made, "triton.matmul_k_split"):
        steps, pieces = math.ceil(1000 / schedule["block_k"]), schedule["split_k"]
        assert (pieces - 1) * math.ceil(steps / pieces) < steps
        launch = made.sketch_of(schedule).launch(made, schedule)
        size = schedule["block_m"] * schedule["block_n"]
        rooms = launch.arguments["partial"].elements // size
        assert rooms == (math.prod(launch.grid) if pieces > 1 else 1)
        assert launch.arguments["counters"] == WorkspaceArgument(math.prod(launch.grid) // pieces, "int32")


def test_whole_tiles_come_in_rounds_and_the_rest_is_shared():
    made = task("matmul", M=512, N=4608, K=4096)
    sketch = made.sketches["triton.matmul_k_shares"]
    seen = set()
    for schedule in sampled(made, sketch.name, 200):
        programs = math.prod(sketch.launch(made, schedule).grid)
        whole = sketch.launch(made, schedule).arguments["whole"].value
        tiles = math.ceil(512 / schedule["block_m"]) * math.ceil(4608 / schedule["block_n"])
        assert 0 <= whole <= tiles
        assert whole % programs == 0 or whole == tiles
        seen.add("all" if whole == tiles else "some" if whole else "none")
    assert seen == {"all", "some", "none"}


def test_a_nearly_full_round_is_not_shared():
    made = task("matmul", M=2048, N=2048, K=2048)
    launch = made.sketch_of(made.default).launch(made, made.default)
    assert made.default.sketch == "triton.matmul_k_shares"
    assert launch.arguments["whole"].value == 128


def test_shared_memory_counts_operands_by_their_own_dtype():
    wide, narrow = (task(operator, **DECODE) for operator in ("linear", "int8_linear"))
    default = wide.sketches["triton.linear_k_split"].default(wide)
    same = changed(default, sketch="triton.int8_linear_k_split")
    shared = [made.sketch_of(s).derived(made, s)["shared_bytes"] for made, s in ((wide, default), (narrow, same))]
    assert shared[0] == 2 * shared[1]


def test_what_a_workload_lacks_has_another_tensor_in_its_place():
    made = task("linear", bias=0, residual=1)
    for sketch in made.sketches.values():
        launch = sketch.launch(made, sketch.default(made))
        assert launch.arguments["bias"] == TensorArgument("C")
        assert launch.arguments["residual"].tensor == "RESIDUAL"
        assert (launch.constants["BIAS"], launch.constants["RESIDUAL"]) == (False, True)


def test_b_is_described_as_it_is_stored():
    for trans_b, shape, block in ((0, (4096, 14336), (64, 256)), (1, (14336, 4096), (256, 64))):
        made = task("matmul", M=4096, N=14336, K=4096, trans_b=trans_b)
        schedule = changed(made.default, block_m=128, block_n=256, block_k=64)
        assert made.sketch_of(schedule).launch(made, schedule).arguments["b"] == DescriptorArgument("B", shape, block)


def test_the_second_matrix_is_passed_like_the_first():
    made = task("gated_linear")
    for sketch in made.sketches.values():
        given = sketch.launch(made, sketch.default(made)).arguments
        assert list(given)[:4] == ["a", "b", "up", "c"]
        assert (given["b"].tensor, given["up"].tensor) == ("B", "UP")
        assert type(given["b"]) is type(given["up"])


def test_blocks_share_a_stored_transpose_in_slabs_only():
    made = task("matmul", M=4096, N=4096, K=4096, trans_b=1)
    schedule = changed(made.sketches["triton.matmul_warpgroups"].default(made), block_n=128, num_stages=2, cluster=2)
    assert made.space.why_not(changed(schedule, block_k=64)) is None
    assert "slab" in made.space.why_not(changed(schedule, block_k=128))


def test_the_roofline_is_that_of_the_operands():
    wide, narrow = (task(operator, M=8192, N=8192, K=8192) for operator in ("linear", "int8_linear"))
    assert narrow.floor_seconds < 0.6 * wide.floor_seconds


def test_every_file_of_a_kernel_defines_its_sketch():
    made = task("matmul", **DECODE)
    names = {path.name for path in made.sketches["triton.matmul_k_shares"].sources()}
    assert {"split.py", "matmul.py", "moved.py", "epilogue.py", "matmul_k_shares.py", "matmul_tma.py"} <= names


def test_long_sums_of_fp8_leave_the_tensor_cores():
    long, short = (task("fp8_linear", dtype="bfloat16", M=4096, N=4096, K=k) for k in (4096, 1024))
    name = "triton.fp8_linear_warpgroups"
    default = long.sketches[name].default(long)
    assert long.space.why_not(default) is None
    assert (
        long.sketches[name].launch(long, default).constants["CHAIN"] * default["block_k"] == default["promote"] == 512
    )
    assert "14 bits" in long.space.why_not(changed(default, promote=0))
    assert "registers" in long.space.why_not(changed(default, block_n=256, num_stages=3))
    assert short.space.why_not(changed(default, promote=0)) is None
    assert short.sketches[name].launch(short, changed(default, promote=0)).constants["CHAIN"] == 8
    tiled = long.sketches["triton.fp8_linear_tiled"].default(long)
    assert "14 bits" in long.space.why_not(changed(tiled, promote=0))
