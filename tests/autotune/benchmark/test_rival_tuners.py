"""Other tuners as libraries: what they are given is the operator, and what they find is right."""

import os
import subprocess
import sys

import numpy as np
import pytest

from autotune.benchmark.libraries import helion, metaschedule, triton_autotune
from autotune.devices.cpu import Cpu
from autotune.generators.triton import GENERATOR
from search_spaces.hardware import cpu_hardware, cuda_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator


def cuda_task(operator, arch="sm_90", **axes):
    workload = find_operator(operator).workload("cuda", "float16", **axes)
    return Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


@pytest.mark.parametrize("operator", list(triton_autotune.STRUCTURES))
def test_the_tutorials_lists_are_schedules_of_kernels_that_differ_only_in_what_is_listed(operator):
    task = cuda_task(operator)
    listed = triton_autotune.schedules(task)
    assert len(set(listed)) == len(listed) >= 8
    launches = [triton_autotune.structure(task).launch(task, schedule) for schedule in listed]
    assert all(launch.arguments == launches[0].arguments for launch in launches)
    varying = {n for launch in launches for n, v in launch.constants.items() if v != launches[0].constants[n]}
    assert varying <= {"BLOCK_M", "BLOCK_N", "BLOCK_K"}
    grids = {tuple(launch.constants[n] for n in sorted(varying)): launch.grid for launch in launches}
    assert all(grids[tuple(launch.constants[n] for n in sorted(varying))] == launch.grid for launch in launches)


def test_the_list_compiles(tmp_path):
    pytest.importorskip("triton")
    task = cuda_task("matmul", M=512, N=512, K=512)
    built = [GENERATOR.build(task, schedule, tmp_path) for schedule in triton_autotune.schedules(task)[:4]]
    assert all(artifact.resources.registers > 0 for artifact in built)


def test_an_operator_that_no_tutorial_tunes_has_no_call():
    assert triton_autotune.LIBRARY.calls(cuda_task("softmax"), (), ()) == {}


@pytest.mark.slow
def test_what_metaschedule_finds_is_right(monkeypatch):
    pytest.importorskip("tvm")
    monkeypatch.setattr(metaschedule, "TRIALS", 4)
    monkeypatch.setattr(metaschedule, "BATCH", 4)
    workload = find_operator("matmul").workload("llvm", "float32", M=64, N=64, K=64)
    hardware = cpu_hardware("cpu", 2, 1 << 20, 1e11, {"float32": 1e12})
    task = Task("matmul", workload, Target("llvm", cores=2), hardware)
    # Aligned as TVM's kernels assume.
    device = Cpu()
    a, b, c = (device.typed(device.raw(spec.bytes), spec) for spec in task.operator.tensors(workload))
    for seed, array in enumerate((a, b)):
        array[...] = np.random.default_rng(seed).standard_normal((64, 64), dtype=np.float32)
    c[...] = np.nan
    (call,) = metaschedule.LIBRARY.calls(task, (a, b), (c,)).values()
    call()
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-4)


def test_metaschedule_leaves_out_what_has_no_definition_for_it():
    pytest.importorskip("tvm")
    workload = find_operator("int8_dynamic_linear").workload("llvm")
    hardware = cpu_hardware("cpu", 2, 1 << 20, 1e11, {"float32": 1e12})
    assert metaschedule.LIBRARY.calls(Task("int8_dynamic_linear", workload, Target("llvm"), hardware), (), ()) == {}


@pytest.mark.parametrize(
    ("operator", "axes", "written"),
    [
        ("matmul", {}, True),
        ("matmul", {"trans_b": 1}, False),
        ("attention", {"causal": 0}, True),
        ("attention", {"causal": 1}, False),
        ("attention", {"causal": 0, "H": 8, "G": 2}, False),
        ("softmax", {}, True),
        ("linear", {}, False),
    ],
)
def test_helion_has_a_kernel_for_what_its_examples_compute(operator, axes, written):
    assert helion.written(find_operator(operator).workload("cuda", **axes)) == written


@pytest.mark.parametrize(("operator", "axes"), [("softmax", {"M": 6, "N": 50})])
def test_helions_kernels_compute_their_operators(operator, axes):
    """In Helion's interpreter, which runs on a CPU what makes no accumulators: they would be on a GPU."""
    pytest.importorskip("helion")
    code = (
        "import numpy as np, torch\n"
        "from autotune.benchmark.libraries.helion import LIBRARY\n"
        "from search_spaces.hardware import cuda_hardware\n"
        "from search_spaces.target import Target\n"
        "from search_spaces.task import Task, find_operator\n"
        f"workload = find_operator('{operator}').workload('cuda', 'float32', **{axes})\n"
        f"task = Task('{operator}', workload, Target('cuda', 'sm_90'), cuda_hardware('sm_90'))\n"
        "specs = task.operator.tensors(workload)\n"
        "given = [torch.randn(t.shape, dtype=torch.float32) for t in specs if not t.output]\n"
        "(call,) = LIBRARY.calls(task, given, [torch.empty(specs[-1].shape)]).values()\n"
        "(right,) = task.operator.reference(workload, np, *(g.double().numpy() for g in given))\n"
        "np.testing.assert_allclose(call().numpy(), right, rtol=1e-4, atol=1e-4)\n"
    )
    environment = {**os.environ, "HELION_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_helion_has_the_device_in_no_process_of_its_own():
    """It would be left behind where the tuner is killed."""
    pytest.importorskip("helion")
    from autotune.benchmark import helion_kernels

    task = cuda_task("softmax", M=6, N=50)
    assert helion.LIBRARY.calls(task, (None,), (None,))
    settings = helion_kernels.softmax.settings
    assert not settings.autotune_benchmark_subprocess
