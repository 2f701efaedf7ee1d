"""Exports on a real GPU: each consumer runs the tuned schedule, and gets the operator's values."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import autotune
from autotune.devices.cuda import torch_info
from autotune.exporting import export
from autotune.generators.triton import GENERATOR
from autotune.recall import recall
from autotune.reuse.artifact import FILE as LAUNCH
from autotune.reuse.inductor import FILE as TABLE
from autotune.reuse.inductor import tuned_table
from autotune.reuse.triton import FILE as CONFIGS
from autotune.reuse.triton import TunedConfigs
from autotune.tuned_log import write_entries
from search_spaces.hardware import cuda_limits
from search_spaces.registry import load_file

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
tuned = load_file(Path(__file__).parents[1] / "support" / "tuned.py")
EXAMPLES = Path(__file__).parents[2] / "experiments" / "examples"
SHAPE = {"M": 512, "N": 256, "K": 128}
TILE = {"block_m": 64, "block_n": 32, "block_k": 32, "order": "rows", "group": 4, "num_warps": 4, "num_stages": 2}


@pytest.fixture(scope="module")
def device():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch_info(torch, torch.device("cuda", 0))


def tiled(device):
    task = tuned.task_on(device, "matmul", "triton.matmul_tiled", "float16", **SHAPE)
    return tuned.entry_for(task, device, {**task.default.to_json(), **TILE})


def operands():
    torch.manual_seed(0)
    return (
        torch.randn(SHAPE["M"], SHAPE["K"], device="cuda").half(),
        torch.randn(SHAPE["K"], SHAPE["N"], device="cuda").half(),
    )


def assert_product(made, a, b):
    torch.testing.assert_close(made.double(), a.double() @ b.double(), rtol=4e-3, atol=4e-2)


def test_the_loaded_kernel_gives_the_bits_of_the_tuned_schedule(device, tmp_path):
    entry = tiled(device)
    write_entries(tmp_path / "log.json", [entry])
    a, b = operands()
    kernel = autotune.load(tmp_path / "log.json").kernel("matmul", a, b)
    made = kernel(a, b)
    assert_product(made, a, b)
    winner = recall(entry)
    artifact = GENERATOR.build(winner.task, winner.schedule, tmp_path)
    wanted = torch.empty_like(made)
    GENERATOR.load(winner.task, winner.schedule, artifact, tmp_path).bind([a, b], [wanted])()
    assert torch.equal(made, wanted)


def test_triton_launches_the_tuned_configuration_and_times_nothing(device, tmp_path, monkeypatch):
    kernels = pytest.importorskip("search_spaces.kernels.matmul")
    export([tiled(device)], "triton", tmp_path / "out")
    tunable = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "STORE_VECTOR", "group", "columns")
    plain = {
        "BATCH": 1,
        "TRANS_B": False,
        "SCALED": False,
        "BIAS": False,
        "RESIDUAL": False,
        "ACTIVATION": 0,
        "PROMOTE": 0,
    }
    found = TunedConfigs.read(tmp_path / "out" / CONFIGS, "matmul", device=device.name)
    options = found.autotune_options()
    dummies = [triton.Config(dict.fromkeys(tunable, value)) for value in (16, 32)]
    tuner = triton.autotune(configs=dummies, key=["M", "N", "K"], **options)(kernels.tiled)

    def benchmark(*_, **__):
        raise AssertionError("it is benchmarked")

    monkeypatch.setattr("triton.testing.do_bench", benchmark)
    a, b = operands()
    c = torch.empty(SHAPE["M"], SHAPE["N"], device="cuda", dtype=torch.float16)
    winner = recall(tiled(device))
    tuner[winner.task.sketch_of(winner.schedule).launch(winner.task, winner.schedule).grid](
        a, b, c, c, c, c, c, **SHAPE, **plain
    )
    assert_product(c, a, b)
    assert tuner.best_config.kwargs["BLOCK_M"] == TILE["block_m"]
    assert tuner.best_config.num_warps == TILE["num_warps"]


def test_torch_compile_takes_the_tile_from_the_table(device, tmp_path):
    pytest.importorskip("torch._inductor.lookup_table")
    utils = pytest.importorskip("torch._inductor.utils")
    export([tiled(device)], "inductor", tmp_path / "out")
    a, b = operands()
    torch._dynamo.reset()
    with tuned_table(tmp_path / "out" / TABLE), torch._inductor.config.patch(force_disable_caches=True):
        compiled = torch.compile(torch.mm, mode="max-autotune-no-cudagraphs", dynamic=False)
        made, code = utils.run_and_get_code(compiled, a, b)
    assert_product(made, a, b)
    text = "\n".join(code)
    for name in ("block_m", "block_n", "block_k"):
        assert re.search(rf"{name.upper()}\s*:\s*tl\.constexpr\s*=\s*{TILE[name]}\b", text), name


@pytest.mark.parametrize("sketch", ["triton.matmul_tiled", "triton.matmul_tma"])
def test_a_cubin_is_launched_through_the_driver_alone(sketch, device, tmp_path):
    if sketch.endswith("tma") and not cuda_limits(device.arch).tma:
        pytest.skip("the device has no TMA")
    entry = (
        tiled(device)
        if sketch.endswith("tiled")
        else tuned.entry_on(device, "matmul", sketch, dtype="float16", axes=SHAPE)
    )
    export([entry], "artifact", tmp_path / "out")
    (place,) = (path.parent for path in (tmp_path / "out").rglob(LAUNCH))
    a, b = operands()
    np.savez(tmp_path / "in.npz", A=a.cpu().numpy(), B=b.cpu().numpy())
    command = [EXAMPLES / "run_cubin.py", place, tmp_path / "in.npz", tmp_path / "out.npz"]
    done = subprocess.run([sys.executable, "-I", *command], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert_product(torch.from_numpy(np.load(tmp_path / "out.npz")["C"]).cuda(), a, b)


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_relax_compiles_and_runs_the_tuned_schedule(device, tmp_path):
    tvm = pytest.importorskip("tvm")
    from tvm import relax
    from tvm.s_tir import meta_schedule as ms

    from autotune.relax_form import is_scheduled, relax_module
    from autotune.reuse.tvm import database_folder, tuned_database
    from search_spaces.sketches.tvm.base import tvm_target

    entry = tuned.entry_on(device, "matmul", "tvm.untuned", dtype="float16", axes=SHAPE)
    export([entry], "tvm", tmp_path / "out")
    winner = recall(entry)
    target, module = tvm_target(winner.task), relax_module(winner.task)
    with target, tuned_database(tmp_path / "out", device.name):
        applied = relax.get_pipeline("zero")(module)
    assert any(is_scheduled(f) for _, f in applied.functions_items() if isinstance(f, tvm.tirx.PrimFunc))
    database = ms.database.JSONDatabase(work_dir=str(tmp_path / "out" / database_folder(winner)))
    executable = ms.relax_integration.compile_relax(database, module, target, params=None)
    a, b = operands()
    arguments = [tvm.runtime.tensor(x.cpu().numpy(), tvm.cuda()) for x in (a, b)]
    made = relax.VirtualMachine(executable, tvm.cuda())["main"](*arguments)
    assert_product(torch.from_numpy(made.numpy()).cuda(), a, b)
