import multiprocessing
import shutil

import numpy as np
import pytest

from autotune.generators import tvm as generator_module
from autotune.generators.base import BuildError
from autotune.generators.tvm import GENERATOR
from search_spaces.errors import InvalidSchedule
from search_spaces.hardware import cpu_hardware, cuda_hardware
from search_spaces.schedule import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

pytest.importorskip("tvm")

CPU = cpu_hardware("test cpu", cores=2, l3_bytes=32 << 20, bandwidth=4e10, peak={"float32": 2e11})
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")


def llvm_task(operator, only, dtype="float32", **axes):
    workload = find_operator(operator).workload("llvm", dtype, **axes)
    return Task(operator, workload, Target("llvm", cores=2), CPU, (only,))


def cuda_task(operator, only, dtype="float16", **axes):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    return Task(operator, workload, Target("cuda", "sm_80"), cuda_hardware("sm_80"), (only,))


def aligned(shape, dtype):
    raw = np.empty(int(np.prod(shape)) * np.dtype(dtype).itemsize + 64, np.int8)
    start = -raw.ctypes.data % 64
    return raw[start : start + raw.size - 64].view(dtype).reshape(shape)


def run(task, schedule, folder):
    """Builds, loads and launches `schedule` on random inputs; gives outputs and references."""
    artifact = GENERATOR.build(task, schedule, folder)
    rng = np.random.default_rng(1)
    inputs, outputs = [], []
    for spec in task.operator.tensors(task.workload):
        array = aligned(spec.shape, spec.dtype)
        array[...] = np.nan if spec.output else rng.standard_normal(spec.shape)
        (outputs if spec.output else inputs).append(array)
    kernel = GENERATOR.load(task, schedule, artifact, folder)
    kernel.bind(inputs, outputs)()
    wanted = task.operator.reference(task.workload, np, *(i.astype(np.float64) for i in inputs))
    return outputs, wanted


def sampled(task, count):
    rng = np.random.default_rng(3)
    return [task.space.sample(rng) for _ in range(count)]


@pytest.mark.parametrize(
    ("operator", "only", "dtype", "axes"),
    [
        ("matmul", "tvm.metaschedule", "float32", {"M": 32, "N": 48, "K": 40}),
        ("matmul", "tvm.metaschedule", "float16", {"M": 32, "N": 48, "K": 40}),
        ("matmul", "tvm.matmul_packed", "float32", {"M": 32, "N": 48, "K": 128}),
        ("matmul", "tvm.untuned", "float16", {"M": 7, "N": 13, "K": 31}),
        ("matmul", "tvm.metaschedule", "float32", {"M": 32, "N": 48, "K": 40, "trans_b": 1}),
        ("linear", "tvm.untuned", "float32", {"M": 7, "N": 13, "K": 31, "activation": 1, "residual": 1}),
        ("linear", "tvm.metaschedule", "float16", {"M": 32, "N": 48, "K": 40}),
        ("int8_linear", "tvm.untuned", "float32", {"M": 7, "N": 13, "K": 31}),
        ("int8_linear", "tvm.metaschedule", "float32", {"M": 16, "N": 48, "K": 40, "activation": 1}),
        ("gated_linear", "tvm.untuned", "float32", {"M": 16, "N": 48, "K": 40}),
        ("softmax", "tvm.metaschedule", "float32", {"M": 12, "N": 80}),
        ("softmax", "tvm.untuned", "float16", {"M": 12, "N": 80}),
        ("rms_norm", "tvm.untuned", "float32", {"M": 12, "N": 80, "residual": 1}),
        ("rms_norm", "tvm.metaschedule", "float16", {"M": 12, "N": 80, "residual": 1}),
        ("layer_norm", "tvm.untuned", "float16", {"M": 12, "N": 80}),
        ("layer_norm", "tvm.metaschedule", "float32", {"M": 12, "N": 80}),
        ("reduce", "tvm.untuned", "float32", {"M": 12, "N": 80}),
        ("reduce", "tvm.metaschedule", "float16", {"M": 12, "N": 80, "maximum": 1}),
        ("transpose", "tvm.untuned", "float16", {"B": 2, "M": 12, "N": 80}),
        ("transpose", "tvm.metaschedule", "float32", {"B": 2, "M": 12, "N": 80}),
        ("elementwise", "tvm.untuned", "float16", {"M": 12, "N": 80}),
        ("elementwise", "tvm.metaschedule", "float32", {"M": 12, "N": 80}),
        ("attention", "tvm.metaschedule", "float32", {"H": 2, "S": 16, "D": 16}),
        ("attention", "tvm.untuned", "float32", {"H": 4, "G": 2, "S": 20, "D": 16, "causal": 1}),
    ],
)
def test_built_kernels_compute_the_reference(operator, only, dtype, axes, tmp_path):
    task = llvm_task(operator, only, dtype, **axes)
    tolerance = {"float32": 1e-4, "float16": 2e-2}[dtype]
    for schedule in [task.default] if only == "tvm.untuned" else sampled(task, 4):
        outputs, wanted = run(task, schedule, tmp_path)
        for output, reference in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(output, reference, rtol=tolerance, atol=tolerance, err_msg=str(schedule))


def test_the_same_schedule_is_the_same_binary(tmp_path):
    task = llvm_task("matmul", "tvm.untuned", M=32, N=32, K=32)
    first, second = (GENERATOR.build(task, task.default, tmp_path) for _ in range(2))
    assert first == second
    assert [p.name for p in tmp_path.iterdir()] == [f"{first.sha256[:32]}.so"]


def test_a_refused_schedule_is_one_line(tmp_path):
    task = llvm_task("matmul", "tvm.matmul_packed", M=32, N=32, K=32)
    (schedule,) = sampled(task, 1)
    broken = Schedule.from_json({**schedule.to_json(), "vector": 128})
    with pytest.raises(BuildError, match="TVM refuses it") as caught:
        GENERATOR.build(task, broken, tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_vectorised_exponentials_are_as_exact_as_float32_allows():
    tvm, te = pytest.importorskip("tvm"), pytest.importorskip("tvm.te")
    generator_module.vectorise_exponential()
    count = 1 << 14
    x = te.placeholder((count,), name="x")
    made = tvm.s_tir.Schedule(te.create_prim_func([x, te.compute((count,), lambda i: te.exp(x[i]), name="y")]))
    _, lanes = made.split(made.get_loops(made.get_sblock("y"))[0], [None, 16])
    made.vectorize(lanes)
    values, out = aligned((count,), "float32"), aligned((count,), "float32")
    values[...] = np.linspace(-87, 88, count)
    compiled = tvm.compile(made.mod, target="llvm")
    compiled["main"](tvm.runtime.from_dlpack(values), tvm.runtime.from_dlpack(out))
    np.testing.assert_allclose(out, np.exp(values.astype(np.float64)), rtol=3e-7)


def _build_in_child(task, schedule, folder, queue):
    queue.put(GENERATOR.build(task, schedule, folder).sha256)


def test_a_forked_builder_compiles_what_its_parent_imported(tmp_path):
    task = llvm_task("matmul", "tvm.metaschedule", M=32, N=32, K=32)
    (schedule,) = sampled(task, 1)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    mine = GENERATOR.build(task, schedule, tmp_path).sha256
    children = [context.Process(target=_build_in_child, args=(task, schedule, tmp_path, queue)) for _ in range(2)]
    for child in children:
        child.start()
    assert [queue.get(timeout=60) for _ in children] == [mine, mine]
    for child in children:
        child.join(timeout=10)
        assert child.exitcode == 0


@needs_nvcc
@pytest.mark.parametrize(
    ("operator", "axes"), [("matmul", {"M": 128, "N": 128, "K": 128}), ("softmax", {"M": 64, "N": 256})]
)
def test_cuda_compiles_where_there_is_no_gpu(operator, axes, tmp_path):
    task = cuda_task(operator, "tvm.metaschedule", "float32", **axes)
    schedule = next(s for s in sampled(task, 20) if _accepted(task, s))
    artifact = GENERATOR.build(task, schedule, tmp_path)
    used = artifact.resources
    assert used.registers
    assert used.threads
    assert used.spill_bytes is not None
    assert len(artifact.sha256) == 64


def _accepted(task, schedule):
    try:
        task.sketch_of(schedule).scheduled(task, schedule)
    except InvalidSchedule:
        return False
    return dict(schedule.items).get("unroll", 0) <= 64


def test_cuda_without_nvcc_says_what_is_missing(tmp_path, monkeypatch):
    task = cuda_task("softmax", "tvm.untuned", M=64, N=256)
    monkeypatch.setattr(generator_module.shutil, "which", lambda name: None)
    with pytest.raises(BuildError, match="nvcc is not on PATH"):
        GENERATOR.build(task, task.default, tmp_path)


def test_without_tvm_the_remedy_is_named(monkeypatch):
    assert GENERATOR.missing() is None
    monkeypatch.setattr(generator_module.registry, "available", lambda module: False)
    assert "pip install 'apache-tvm==0.27.0.post1'" in GENERATOR.missing()


def test_versions_name_both_packages_that_must_fit():
    assert set(GENERATOR.versions()) == {"apache-tvm", "apache-tvm-ffi"}
