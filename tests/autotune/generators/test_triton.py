"""The Triton generator without a GPU: what it builds, refuses, reports and finds again."""

import contextlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from autotune.generators.base import BuildError
from autotune.generators.triton import GENERATOR
from search_spaces.amd import hip_hardware
from search_spaces.hardware import cuda_hardware
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

pytestmark = pytest.mark.skipif(GENERATOR.missing() is not None, reason=str(GENERATOR.missing()))

SMALL = {
    "matmul": {"M": 512, "N": 512, "K": 256},
    "batched_matmul": {"B": 3, "M": 256, "N": 512, "K": 256},
    "int8_linear": {"M": 256, "N": 512, "K": 256},
    "int8_dynamic_linear": {"M": 256, "N": 512, "K": 256},
    "weight_only_linear": {"M": 16, "N": 512, "K": 512},
    "grouped_matmul": {"E": 4, "M": 256, "T": 2, "N": 512, "K": 256},
    "fused_moe": {"E": 4, "M": 256, "T": 2, "N": 256, "K": 512},
    "gated_linear": {"M": 256, "N": 512, "K": 256},
    "linear": {"M": 256, "N": 512, "K": 256, "residual": 1},
    "softmax": {"M": 512, "N": 8192},
    "rms_norm": {"M": 512, "N": 8192, "residual": 1},
    "layer_norm": {"M": 512, "N": 8192},
    "transpose": {"B": 2, "M": 512, "N": 2048},
    "elementwise": {"M": 512, "N": 8192},
    "argmax": {"M": 512, "N": 8192},
    "reduce": {"M": 512, "N": 8192},
    "attention": {"B": 1, "H": 4, "G": 2, "S": 512, "D": 64},
    "attention_window": {"B": 1, "H": 4, "G": 2, "S": 512, "D": 96, "W": 100},
    "masked_softmax": {"M": 1024, "N": 512, "S": 512},
    "conv2d": {"N": 2, "C": 64, "K": 64, "H": 14, "W": 14},
    "attention_decode": {"B": 1, "H": 8, "G": 2, "T": 1, "S": 4096, "D": 128},
    "attention_paged": {"B": 2, "H": 8, "G": 2, "T": 1, "S": 2048, "D": 128},
}


def task(operator, arch, dtype="float16", **axes):
    workload = find_operator(operator).workload("cuda", dtype, **(axes or SMALL[operator]))
    return Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def changed(schedule, **knobs):
    return Schedule(tuple((k, knobs.get(k, v)) for k, v in schedule.items))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("operator", list(SMALL))
def test_every_sketch_builds_its_default(operator, arch, folder):
    made = task(operator, arch)
    for sketch in made.sketches.values():
        schedule = sketch.default(made)
        artifact = GENERATOR.build(made, schedule, folder)
        used = artifact.resources
        assert used.registers > 0
        assert used.spill_bytes is not None
        assert used.shared_bytes <= made.hardware.limits.shared_per_block
        assert used.threads == sketch.derived(made, schedule)["threads"]
        assert Path(artifact.path).is_dir()
        assert folder in Path(artifact.path).parents


@pytest.mark.parametrize("operator", list(SMALL))
def test_every_sketch_that_can_builds_for_an_amd_gpu(operator, folder):
    workload = find_operator(operator).workload("hip", "float16", **SMALL[operator])
    made = Task(operator, workload, Target("hip", "gfx942"), hip_hardware("gfx942"), ("triton.",))
    assert made.sketches
    rng = np.random.default_rng(0)
    for sketch in made.sketches.values():
        sampled = made.space.sample(rng, Schedule((("sketch", sketch.name),)))
        for schedule in (sketch.default(made), sampled):
            try:
                artifact = GENERATOR.build(made, schedule, folder)
            except BuildError as error:
                # What Triton keeps in shared memory is known to be so much at least.
                if schedule is sampled and "shared memory" in str(error):
                    continue
                raise
            used = artifact.resources
            assert used.registers > 0
            assert used.spill_bytes is not None
            assert sketch.derived(made, schedule)["shared_bytes"] <= used.shared_bytes <= 64 * 1024, str(schedule)
            assert used.threads == 64 * schedule.integer("num_warps") <= 1024
            assert list(Path(artifact.path).rglob("*.hsaco"))


def test_what_an_amd_gpu_has_not_is_refused_with_the_reason():
    workload = find_operator("fp8_linear").workload("hip")
    made = Task("fp8_linear", workload, Target("hip", "gfx942"), hip_hardware("gfx942"), ("triton.",))
    assert not made.sketches
    assert "no matrix cores for float8_e4m3fn" in made.refusals["triton.fp8_linear_tiled"]
    assert "no TMA" in made.refusals["triton.fp8_linear_tma"]


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize(
    "operator",
    [
        "matmul",
        "rms_norm",
        "layer_norm",
        "attention",
        "attention_decode",
        "attention_paged",
        "conv2d",
        "fused_moe",
        "grouped_matmul",
        "int8_dynamic_linear",
        "weight_only_linear",
    ],
)
def test_the_estimate_of_shared_memory_is_a_lower_bound(operator, arch, folder):
    made = task(operator, arch)
    rng = np.random.default_rng(3)
    for sketch in made.sketches.values():
        schedule = made.space.sample(rng, Schedule((("sketch", sketch.name),)))
        used = GENERATOR.build(made, schedule, folder).resources
        assert sketch.derived(made, schedule)["shared_bytes"] <= used.shared_bytes, str(schedule)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_blocks_of_a_cluster_share_copies(dtype, folder):
    made = task("matmul", "sm_90", dtype)
    alone = made.sketches["triton.matmul_warpgroups"].default(made)
    together = changed(alone, cluster=2)
    builds = [GENERATOR.build(made, schedule, folder) for schedule in (together, alone)]
    multicast = [b"UTMALDG.2D.MULTICAST" in disassembled(build) for build in builds]
    assert multicast == [True, False]
    assert all(build.resources.spill_bytes == 0 for build in builds)


@pytest.mark.parametrize("knobs", [{"cluster": 2}, {"cluster": 1}, {"block_m": 3}])
def test_building_leaves_the_settings_of_the_users_own_kernels_alone(knobs, folder):
    from triton import knobs as settings

    def state():
        groups = (settings.cache, settings.compilation, settings.runtime)
        return settings.cache.dir, settings.runtime.add_stages_inspection_hook, [dict(vars(g)) for g in groups]

    before = state()
    made = task("matmul", "sm_90")
    with contextlib.suppress(BuildError):
        GENERATOR.build(made, changed(made.sketches["triton.matmul_warpgroups"].default(made), **knobs), folder)
    assert state() == before


def disassembled(artifact):
    from triton import knobs

    cubin = next(Path(artifact.path).glob("*.cubin"))
    return subprocess.run([knobs.nvidia.cuobjdump.path, "-sass", str(cubin)], capture_output=True, check=True).stdout


def test_a_runtime_knob_needs_no_new_binary(folder, monkeypatch):
    made = task("matmul", "sm_80")
    schedule = made.sketches["triton.matmul_tiled"].default(made)
    first = GENERATOR.build(made, changed(schedule, group=1), folder)
    cubins = set(folder.rglob("*.cubin"))

    from triton.backends.nvidia.compiler import CUDABackend

    monkeypatch.setattr(CUDABackend, "add_stages", lambda *_: pytest.fail("compiled again"))
    second = GENERATOR.build(made, changed(schedule, group=2), folder)
    assert second.path == first.path
    assert set(folder.rglob("*.cubin")) == cubins
    # The same binary walks over the tiles in another order: a different program.
    assert second.sha256 != first.sha256
    assert GENERATOR.build(made, changed(schedule, group=1), folder) == first


def test_an_impossible_schedule_is_refused_with_one_line(folder):
    made = task("matmul", "sm_86", M=4096, N=4096, K=4096)
    schedule = made.sketches["triton.matmul_tiled"].default(made)
    too_large = changed(schedule, block_m=256, block_n=256, block_k=128, num_stages=4)
    with pytest.raises(BuildError, match="shared memory") as caught:
        GENERATOR.build(made, too_large, folder)
    assert "\n" not in str(caught.value)


def test_what_the_compiler_raises_is_a_refusal(folder):
    made = task("matmul", "sm_80")
    schedule = changed(made.sketches["triton.matmul_tiled"].default(made), block_m=48)
    with pytest.raises(BuildError) as caught:
        GENERATOR.build(made, schedule, folder)
    assert "power of 2" in str(caught.value)
    assert "\n" not in str(caught.value)


OWN_SKETCH = """
import triton
import triton.language as tl

from search_spaces.operator import Axis
from search_spaces.operators.softmax import Softmax
from search_spaces.sketches.triton.base import TensorArgument, TritonLaunch, TritonSketch
from search_spaces.space import Family, Knob, SketchSpace


@triton.jit
def kernel(x, y, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < M * N), mask=at < M * N)


class Copy(TritonSketch):
    name = "triton.copy"
    operator = "softmax"
    kernel = ":kernel"
    summary = "a copy"

    def refuses(self, task):
        return None

    def spaces(self, task):
        return (SketchSpace(self.name, (Knob("block", Family.TILE_SIZES, (256, 512)),)),)

    def launch(self, task, schedule):
        m, n, block = task.workload["M"], task.workload["N"], schedule.integer("block")
        arguments = {"x": TensorArgument("X"), "y": TensorArgument("Y")}
        return TritonLaunch(arguments, {"M": m, "N": n, "BLOCK": block}, (-(-m * n // block), 1, 1), 4, 1)


class Own(Softmax):
    def sketches(self):
        return (Copy(),)
"""


def test_a_sketch_in_a_users_own_file_builds(folder, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(OWN_SKETCH)
    reference = f"{file}:Own"
    workload = find_operator(reference).workload("cuda", M=8, N=64)
    made = Task(reference, workload, Target("cuda", "sm_80"), cuda_hardware("sm_80"), ("triton.copy",))
    schedule = Schedule((("sketch", "triton.copy"), ("block", 256)))
    assert GENERATOR.build(made, schedule, folder).resources.registers > 0


def test_building_needs_no_torch(folder):
    code = (
        "import sys, importlib, pathlib\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from autotune.generators.triton import GENERATOR\n"
        "[importlib.import_module(m) for m in GENERATOR.preload]\n"
        "from search_spaces.task import Task, find_operator\n"
        "from search_spaces.target import Target\n"
        "from search_spaces.hardware import cuda_hardware\n"
        "workload = find_operator('softmax').workload('cuda', M=8, N=64)\n"
        "task = Task('softmax', workload, Target('cuda', 'sm_80'), cuda_hardware('sm_80'), ('triton.',))\n"
        "schedule = task.sketches['triton.softmax_rows'].default(task)\n"
        f"GENERATOR.build(task, schedule, pathlib.Path({str(folder)!r}))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_versions_name_triton():
    assert set(GENERATOR.versions()) == {"triton"}
