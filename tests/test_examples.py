"""The worked example of an operator of one's own: right on this CPU, and its Triton kernel compiles."""

from pathlib import Path

import pytest

from autotune.executors.base import Measuring, Site
from autotune.executors.local import Local
from autotune.generators.triton import GENERATOR
from autotune.measurement import Policy, Status
from autotune.measurer import Measurer
from search_spaces.hardware import cpu_hardware, cuda_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

RMS_NORM = f"{Path(__file__).parents[1] / 'experiments' / 'examples' / 'rms_norm.py'}:RmsNorm"


def test_the_example_is_right_on_the_cpu(tmp_path):
    workload = find_operator(RMS_NORM).workload("llvm", M=64, N=128)
    task = Task(RMS_NORM, workload, Target("llvm"), cpu_hardware("test", 2, 1 << 20, 1e13, {"float32": 1e15}))
    measurer = Measurer(Local(Site(), tmp_path), Measuring(task, Policy(samples=2)), jobs=1)
    measurer.device()
    measurer.submit([task.default])
    done = []
    while measurer.in_flight:
        done += measurer.completed(1.0)
    measurer.close()
    assert [m.status for m in done] == [Status.OK], done


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_examples_own_kernel_compiles(arch, tmp_path):
    pytest.importorskip("triton")
    workload = find_operator(RMS_NORM).workload("cuda", M=64, N=1024)
    task = Task(RMS_NORM, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))
    assert task.space.why_not(task.default) is None
    resources = GENERATOR.build(task, task.default, tmp_path).resources
    assert resources.registers
    assert resources.threads == 512
