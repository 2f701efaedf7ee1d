"""Runs the kernels in Triton's interpreter on tiny shapes: what a schedule computes, without a GPU."""

import os
import subprocess
import sys

import numpy as np
import pytest

CASES = {
    "matmul": ("M=70,N=80,K=48", "M=64,N=64,K=128", "M=17,N=24,K=40"),
    "softmax": ("M=5,N=333", "M=9,N=256", "M=3,N=5000"),
    "rms_norm": ("M=5,N=333", "M=9,N=256", "M=3,N=5000", "M=5,N=333,residual=1", "M=3,N=5000,residual=1"),
    "layer_norm": ("M=5,N=333", "M=9,N=256", "M=3,N=5000", "M=2,N=8192"),
    "attention": (
        "B=1,H=2,G=1,S=96,D=16,causal=1",
        "B=1,H=2,G=2,S=50,D=32,causal=1",
        "B=2,H=4,G=2,S=64,D=16,causal=0",
        "B=1,H=1,G=1,S=45,D=16,causal=0",
    ),
}
SCHEDULES = 2
LARGEST = 64


def schedules(task, sketch, rng):
    """Some random schedules with small tiles, and in attention one with longer blocks of keys than of queries."""
    from search_spaces.space import Schedule

    def small(prefix, options):
        kept = [o for o in options if not isinstance(o, int) or o <= LARGEST] or list(options)
        return [kept[i] for i in rng.permutation(len(kept))]

    def long_keys(prefix, options):
        name = task.space.next_knob(prefix)
        return sorted(options, reverse=name == "block_n") if name in ("block_m", "block_n") else small(prefix, options)

    prefix = Schedule((("sketch", sketch.name),))
    found = [task.space.complete(prefix, small) for _ in range(SCHEDULES)]
    if sketch.operator == "attention":
        found.append(task.space.complete(prefix, long_keys))
    return [s for s in dict.fromkeys(found) if s is not None]


def mend_interpreter():
    """NumPy 2.4 makes no integer of an array with one element, as the interpreter's loops would have it."""
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def mended(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = mended


def run(task, schedule, inputs, outputs):
    """Interprets one schedule."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    from autotune.generators.triton import _kernel
    from search_spaces.sketches.triton.base import DescriptorArgument, TensorArgument

    sketch = task.sketch_of(schedule)
    launch = sketch.launch(task, schedule)
    tensors = dict(zip([t.name for t in task.operator.tensors(task.workload)], (*inputs, *outputs), strict=True))
    values = {}
    for name, argument in launch.arguments.items():
        if isinstance(argument, TensorArgument):
            values[name] = tensors[argument.tensor]
        elif isinstance(argument, DescriptorArgument):
            view = tensors[argument.tensor].view(argument.shape)
            values[name] = TensorDescriptor.from_tensor(view, list(argument.block))
        else:
            values[name] = argument.value
    assert isinstance(outputs[0], torch.Tensor)
    _kernel(sketch)[launch.grid](**values, **launch.constants)


def interpret(operator, axes, dtype):
    """Compares every sketch's schedules with the reference; prints how many were right."""
    import torch
    from triton.experimental.gluon._runtime import GluonJITFunction

    from autotune.generators.triton import _kernel
    from search_spaces.hardware import cuda_hardware
    from search_spaces.target import Target
    from search_spaces.task import Task, find_operator

    workload = find_operator(operator).workload("cuda", dtype, **axes)
    task = Task(operator, workload, Target("cuda", "sm_90"), cuda_hardware("sm_90"), ("triton",))
    rng = np.random.default_rng(0)
    specs = task.operator.tensors(workload)
    inputs = [torch.from_numpy(rng.standard_normal(t.shape)).to(getattr(torch, dtype)) for t in specs if not t.output]
    expected = task.operator.reference(workload, np, *(i.double().numpy() for i in inputs))
    for name, sketch in task.sketches.items():
        # Gluon has no interpreter.
        if isinstance(_kernel(sketch), GluonJITFunction):
            continue
        for schedule in schedules(task, sketch, rng):
            outputs = [torch.full(t.shape, float("nan"), dtype=getattr(torch, dtype)) for t in specs if t.output]
            run(task, schedule, inputs, outputs)
            for output, right in zip(outputs, expected, strict=True):
                worst = float(np.abs(output.double().numpy() - right).max() / np.abs(right).max())
                assert worst < (2e-3 if dtype == "float16" else 1e-5), f"{schedule}: {worst}"
            print("right", name)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("operator", list(CASES))
def test_every_sketch_computes_its_operator(operator, dtype):
    pytest.importorskip("triton")
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, __file__, operator, dtype],
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("right") >= len(CASES[operator])


if __name__ == "__main__":
    mend_interpreter()
    for case in CASES[sys.argv[1]]:
        interpret(sys.argv[1], {k: int(v) for k, v in (pair.split("=") for pair in case.split(","))}, sys.argv[2])
