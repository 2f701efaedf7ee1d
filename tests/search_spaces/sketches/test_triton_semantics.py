"""Runs the kernels in Triton's interpreter on tiny shapes: what a schedule computes, without a GPU."""

import os
import subprocess
import sys

import numpy as np
import pytest

CASES = {
    "matmul": ("M=70,N=80,K=48", "M=64,N=64,K=128", "M=17,N=24,K=40", "M=33,N=72,K=136,trans_b=1", "M=1,N=80,K=264"),
    "linear": (
        "M=40,N=72,K=48",
        "M=16,N=64,K=264,activation=1,residual=1",
        "M=3,N=40,K=136,activation=3,bias=0,residual=1",
        "M=17,N=24,K=40,activation=0,bias=0",
    ),
    "batched_matmul": ("B=3,M=64,N=40,K=64", "B=2,M=128,N=80,K=72,trans_b=1", "B=3,M=17,N=24,K=40"),
    "grouped_matmul": ("E=3,M=40,T=2,N=72,K=64", "E=5,M=3,T=1,N=24,K=40", "E=1,M=70,T=1,N=64,K=48"),
    "fused_moe": (
        "E=3,M=40,T=2,N=72,K=64",
        "E=6,M=3,T=1,N=24,K=40",
        "E=1,M=33,T=1,N=40,K=48",
        "E=40,M=2,T=3,N=16,K=24",
    ),
    "weight_only_linear": (
        "M=70,N=80,K=64,bits=4,group=64",
        "M=16,N=72,K=384,bits=4,group=128",
        "M=1,N=40,K=96,bits=8,group=32",
        "M=1,N=90,K=1152,bits=4,group=128",
        "M=1,N=33,K=320,bits=4,group=32",
        "M=3,N=24,K=640,bits=8,group=64",
        "M=4,N=33,K=320,bits=4,group=64",
        "M=17,N=24,K=128,bits=8,group=128",
    ),
    "int8_dynamic_linear": (
        "M=70,N=80,K=64",
        "M=17,N=48,K=272,activation=3",
        "M=1,N=80,K=1000,bias=0",
    ),
    "int8_linear": ("M=70,N=80,K=64", "M=17,N=48,K=272,activation=3", "M=1,N=80,K=64,bias=0"),
    "fp8_linear": ("M=70,N=80,K=64", "M=17,N=48,K=272,activation=3", "M=1,N=80,K=64,bias=0"),
    "block_fp8_matmul": ("M=70,N=80,K=64", "M=17,N=48,K=272", "M=1,N=130,K=200"),
    "gated_linear": ("M=70,N=80,K=48", "M=17,N=24,K=40,activation=2", "M=64,N=64,K=128,activation=1"),
    "softmax": ("M=5,N=333", "M=9,N=256", "M=3,N=5000"),
    "rms_norm": ("M=5,N=333", "M=9,N=256", "M=3,N=5000", "M=5,N=333,residual=1", "M=3,N=5000,residual=1"),
    "reduce": ("M=5,N=333", "M=9,N=256,maximum=1", "M=3,N=5000,maximum=1", "M=2,N=70000"),
    "argmax": ("M=5,N=333", "M=9,N=256", "M=3,N=5000", "M=2,N=70000"),
    "elementwise": ("M=5,N=333", "M=8,N=256", "M=1,N=20000"),
    "transpose": ("B=1,M=50,N=40", "B=3,M=64,N=32", "B=2,M=7,N=129"),
    "layer_norm": ("M=5,N=333", "M=9,N=256", "M=3,N=5000", "M=2,N=8192"),
    "attention": (
        "B=1,H=2,G=1,S=96,D=16,causal=1",
        "B=1,H=2,G=2,S=50,D=32,causal=1",
        "B=2,H=4,G=2,S=64,D=16,causal=0",
        "B=1,H=1,G=1,S=45,D=16,causal=0",
        "B=1,H=2,G=1,S=40,D=96,causal=1",
    ),
    "attention_window": (
        "B=1,H=2,G=1,S=96,D=16,W=20",
        "B=1,H=1,G=1,S=50,D=32,W=1",
        "B=1,H=2,G=2,S=128,D=16,W=70",
        "B=1,H=1,G=1,S=45,D=96,W=100",
    ),
    "masked_softmax": (
        "M=6,N=333,S=3,causal=0",
        "M=8,N=256,S=8,causal=0",
        "M=10,N=333,S=5,causal=1",
        "M=18,N=64,S=9,causal=1",
    ),
    "conv2d": (
        "N=1,C=16,K=24,H=9,W=10,R=3,stride=1,pad=1",
        "N=2,C=64,K=16,H=8,W=6,R=3,stride=2,pad=1",
        "N=3,C=8,K=32,H=5,W=7,R=1,stride=1,pad=0",
        "N=1,C=32,K=16,H=10,W=8,R=1,stride=2,pad=0",
        "N=1,C=3,K=20,H=13,W=12,R=5,stride=2,pad=2",
        "N=2,C=5,K=16,H=6,W=7,R=3,stride=1,pad=1,nchw=1",
    ),
    "attention_decode": (
        "B=1,H=2,G=2,T=1,S=96,D=16",
        "B=2,H=4,G=2,T=1,S=77,D=32",
        "B=1,H=6,G=2,T=5,S=64,D=96",
        "B=1,H=1,G=1,T=3,S=3,D=16",
    ),
    "attention_paged": (
        "B=1,H=2,G=2,T=1,S=96,D=16,page=16",
        "B=3,H=4,G=2,T=1,S=77,D=32,page=16",
        "B=2,H=6,G=2,T=5,S=200,D=96,page=64",
        "B=1,H=1,G=1,T=3,S=3,D=16,page=64",
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
    if sketch.operator in ("attention", "attention_window"):
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

    from autotune.generators.triton import _kernel

    sketch = task.sketch_of(schedule)
    tensors = dict(zip([t.name for t in task.operator.tensors(task.workload)], (*inputs, *outputs), strict=True))
    assert isinstance(outputs[0], torch.Tensor)
    shared = {}
    for launch in sketch.launches(task, schedule):
        interpret_kernel(_kernel(sketch, launch), launch, tensors, shared, schedule)


def interpret_kernel(kernel, launch, tensors, shared, schedule):
    """Interprets one kernel of a schedule; workspaces with a name are in `shared`."""
    import torch
    from triton.tools.tensor_descriptor import TensorDescriptor

    from autotune.triton_kernel import constant
    from search_spaces.sketches.triton.base import DescriptorArgument, TensorArgument, WorkspaceArgument

    values = {}
    for name, argument in launch.arguments.items():
        if isinstance(argument, TensorArgument):
            values[name] = tensors[argument.tensor]
        elif isinstance(argument, DescriptorArgument):
            view = tensors[argument.tensor].view(argument.shape)
            values[name] = TensorDescriptor.from_tensor(view, list(argument.block))
        elif isinstance(argument, WorkspaceArgument):
            space = torch.zeros(argument.elements, dtype=getattr(torch, argument.dtype))
            values[name] = shared.setdefault(argument.name, space) if argument.name else space
            assert values[name].shape == space.shape
        else:
            values[name] = argument.value
    kernel[launch.grid](**values, **{name: constant(value) for name, value in launch.constants.items()})
    for name, argument in launch.arguments.items():
        if isinstance(argument, WorkspaceArgument) and name == "counters":
            assert not values[name].any(), f"{schedule} leaves its counters in {name} as they are"


def poisoned(spec):
    """An output that nothing has written."""
    import torch

    dtype = getattr(torch, spec.dtype)
    return torch.full(spec.shape, float("nan") if dtype.is_floating_point else -1, dtype=dtype)


def interpret(operator, axes, dtype):
    """Compares every sketch's schedules with the reference; prints how many were right."""
    import torch
    from triton.experimental.gluon._runtime import GluonJITFunction

    from autotune.generators.triton import _kernel
    from autotune.inputs import filled
    from search_spaces.hardware import cuda_hardware
    from search_spaces.target import Target
    from search_spaces.task import Task, find_operator

    workload = find_operator(operator).workload("cuda", dtype, **axes)
    task = Task(operator, workload, Target("cuda", "sm_90"), cuda_hardware("sm_90"), ("triton",))
    rng = np.random.default_rng(0)
    specs = task.operator.tensors(workload)
    drawn = [(filled(np, rng.standard_normal(t.shape), t), t.dtype) for t in specs if not t.output]
    inputs = [torch.from_numpy(values).to(getattr(torch, narrow)) for values, narrow in drawn]
    expected = task.operator.reference(workload, np, *(i.double().numpy() for i in inputs))
    for name, sketch in task.sketches.items():
        for schedule in schedules(task, sketch, rng):
            kernels = [_kernel(sketch, launch) for launch in sketch.launches(task, schedule)]
            # Gluon has no interpreter.
            if any(isinstance(kernel, GluonJITFunction) for kernel in kernels):
                continue
            outputs = [poisoned(t) for t in specs if t.output]
            run(task, schedule, inputs, outputs)
            for output, right in zip(outputs, expected, strict=True):
                worst = float(np.abs(output.double().numpy() - right).max() / np.abs(right).max())
                allowed = {torch.float16: 2e-3, torch.float32: 1e-5}.get(output.dtype, 0.0)
                assert worst <= allowed, f"{schedule}: {worst}"
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
