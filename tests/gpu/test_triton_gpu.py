"""Every Triton sketch on a real GPU: right results on odd shapes, the current stream, graphs, equal resources."""

import numpy as np
import pytest

from autotune.checking import tolerance
from autotune.generators.triton import GENERATOR
from autotune.inputs import filled
from search_spaces.hardware import cuda_hardware
from search_spaces.space import Schedule
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
xp = pytest.importorskip("array_api_compat.torch")

RANDOM_SCHEDULES = 2
CASES = [
    ("matmul", "float16", {"M": 512, "N": 768, "K": 640}),
    ("matmul", "bfloat16", {"M": 1000, "N": 520, "K": 264}),
    ("matmul", "float16", {"M": 333, "N": 517, "K": 101}),
    ("matmul", "float32", {"M": 300, "N": 192, "K": 130}),
    ("matmul", "bfloat16", {"M": 16, "N": 4096, "K": 4096}),
    ("matmul", "float16", {"M": 1, "N": 1000, "K": 2056, "trans_b": 1}),
    ("matmul", "float16", {"M": 500, "N": 520, "K": 4096, "trans_b": 1}),
    ("matmul", "float32", {"M": 16, "N": 300, "K": 1000, "trans_b": 1}),
    ("linear", "float16", {"M": 512, "N": 768, "K": 640}),
    ("linear", "bfloat16", {"M": 300, "N": 520, "K": 264, "activation": 3, "residual": 1}),
    ("linear", "float16", {"M": 64, "N": 2048, "K": 4096, "activation": 1, "residual": 1, "bias": 0}),
    ("linear", "float32", {"M": 100, "N": 192, "K": 130, "activation": 2, "residual": 1}),
    ("gated_linear", "float16", {"M": 512, "N": 768, "K": 640}),
    ("gated_linear", "bfloat16", {"M": 300, "N": 520, "K": 264, "activation": 2}),
    ("gated_linear", "float32", {"M": 100, "N": 192, "K": 130}),
    ("int8_linear", "float16", {"M": 300, "N": 528, "K": 1040, "activation": 3}),
    ("batched_matmul", "float16", {"B": 5, "M": 256, "N": 328, "K": 96}),
    ("batched_matmul", "bfloat16", {"B": 3, "M": 128, "N": 200, "K": 264, "trans_b": 1}),
    ("batched_matmul", "float32", {"B": 3, "M": 100, "N": 97, "K": 50}),
    ("int8_linear", "bfloat16", {"M": 16, "N": 1000, "K": 4096}),
    ("fp8_linear", "bfloat16", {"M": 300, "N": 528, "K": 1040}),
    ("fp8_linear", "bfloat16", {"M": 1, "N": 1000, "K": 4096, "bias": 0}),
    ("softmax", "float16", {"M": 300, "N": 4096}),
    ("softmax", "bfloat16", {"M": 77, "N": 1000}),
    ("softmax", "float32", {"M": 1999, "N": 333}),
    ("softmax", "float16", {"M": 9, "N": 70000}),
    ("rms_norm", "float16", {"M": 300, "N": 4096}),
    ("rms_norm", "bfloat16", {"M": 77, "N": 1000, "residual": 1}),
    ("rms_norm", "float32", {"M": 1999, "N": 333, "residual": 1}),
    ("rms_norm", "float16", {"M": 9, "N": 70000}),
    ("rms_norm", "float16", {"M": 64, "N": 8192, "residual": 1}),
    ("layer_norm", "float16", {"M": 300, "N": 4096}),
    ("layer_norm", "bfloat16", {"M": 77, "N": 1000}),
    ("layer_norm", "float32", {"M": 1999, "N": 333}),
    ("layer_norm", "float16", {"M": 9, "N": 70000}),
    ("layer_norm", "float16", {"M": 64, "N": 8192}),
    ("reduce", "float16", {"M": 300, "N": 4096}),
    ("reduce", "bfloat16", {"M": 77, "N": 1000, "maximum": 1}),
    ("reduce", "float32", {"M": 9, "N": 700001}),
    ("reduce", "float16", {"M": 5, "N": 1048576, "maximum": 1}),
    ("transpose", "float16", {"B": 3, "M": 300, "N": 4096}),
    ("transpose", "float32", {"B": 1, "M": 1999, "N": 333}),
    ("elementwise", "float16", {"M": 300, "N": 4096}),
    ("elementwise", "float32", {"M": 1999, "N": 333}),
    ("attention", "float16", {"B": 2, "H": 4, "G": 2, "S": 512, "D": 64, "causal": 1}),
    ("attention", "float16", {"B": 1, "H": 2, "G": 1, "S": 1000, "D": 128, "causal": 1}),
    ("attention", "bfloat16", {"B": 1, "H": 3, "G": 3, "S": 200, "D": 32, "causal": 0}),
    ("attention", "float32", {"B": 1, "H": 2, "G": 2, "S": 100, "D": 64, "causal": 1}),
    ("attention", "bfloat16", {"B": 2, "H": 4, "G": 2, "S": 777, "D": 96, "causal": 0}),
    ("attention", "float16", {"B": 1, "H": 16, "G": 16, "S": 3000, "D": 256, "causal": 1}),
    ("attention_window", "float16", {"B": 1, "H": 4, "G": 2, "S": 1000, "D": 96, "W": 130}),
    ("attention_decode", "float16", {"B": 2, "H": 12, "G": 4, "S": 3001, "T": 3, "D": 96}),
    ("attention_decode", "bfloat16", {"B": 3, "H": 8, "G": 8, "S": 4096, "T": 1, "D": 128}),
    ("attention_decode", "float32", {"B": 1, "H": 4, "G": 2, "S": 500, "T": 1, "D": 64}),
    ("conv2d", "float16", {"N": 2, "C": 64, "K": 72, "H": 14, "W": 18, "R": 3, "stride": 1, "pad": 1}),
    ("conv2d", "bfloat16", {"N": 3, "C": 128, "K": 64, "H": 20, "W": 14, "R": 3, "stride": 2, "pad": 1}),
    ("conv2d", "float16", {"N": 5, "C": 136, "K": 200, "H": 7, "W": 7, "R": 1, "pad": 0}),
    ("conv2d", "float16", {"N": 2, "C": 3, "K": 64, "H": 33, "W": 40, "R": 7, "stride": 2, "pad": 3}),
    ("conv2d", "float16", {"N": 2, "C": 32, "K": 48, "H": 15, "W": 17, "R": 3, "pad": 1, "nchw": 1}),
    ("masked_softmax", "float16", {"M": 300, "N": 1000, "S": 100, "causal": 1}),
    ("masked_softmax", "bfloat16", {"M": 300, "N": 2048, "S": 100, "causal": 0}),
    ("argmax", "float16", {"M": 77, "N": 4096}),
    ("argmax", "float32", {"M": 5, "N": 100003}),
    ("grouped_matmul", "bfloat16", {"E": 7, "M": 100, "T": 3, "N": 520, "K": 264}),
    ("grouped_matmul", "float16", {"E": 64, "M": 512, "T": 6, "N": 768, "K": 640}),
    ("grouped_matmul", "float32", {"E": 3, "M": 50, "T": 2, "N": 99, "K": 70}),
    ("fused_moe", "bfloat16", {"E": 7, "M": 100, "T": 3, "N": 520, "K": 264}),
    ("fused_moe", "float16", {"E": 64, "M": 512, "T": 6, "N": 384, "K": 640}),
    ("fused_moe", "float32", {"E": 3, "M": 50, "T": 2, "N": 99, "K": 70}),
    ("fused_moe", "bfloat16", {"E": 128, "M": 2, "T": 8, "N": 256, "K": 512}),
    ("int8_dynamic_linear", "float16", {"M": 300, "N": 528, "K": 1040, "activation": 3}),
    ("int8_dynamic_linear", "bfloat16", {"M": 1, "N": 1024, "K": 4096, "bias": 0}),
    ("weight_only_linear", "float16", {"M": 1, "N": 4096, "K": 4096}),
    ("weight_only_linear", "bfloat16", {"M": 17, "N": 1000, "K": 1024, "group": 64}),
    ("weight_only_linear", "float16", {"M": 64, "N": 999, "K": 2048, "bits": 8}),
    ("attention_paged", "float16", {"B": 3, "H": 32, "G": 8, "S": 1000, "D": 128}),
    ("attention_paged", "bfloat16", {"B": 2, "H": 40, "G": 8, "S": 777, "T": 3, "D": 96, "page": 64}),
]


@pytest.fixture(scope="module")
def arch():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "sm_{}{}".format(*torch.cuda.get_device_capability())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("run")


def task(operator, dtype, axes, arch):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    return Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("triton.",))


def arrays(made):
    generator = torch.Generator(device="cuda").manual_seed(0)
    specs = made.operator.tensors(made.workload)
    inputs = [
        filled(xp, torch.randn(t.shape, generator=generator, device="cuda"), t).to(getattr(torch, t.dtype))
        for t in specs
        if not t.output
    ]
    outputs = [torch.empty(t.shape, device="cuda", dtype=getattr(torch, t.dtype)) for t in specs if t.output]
    return inputs, outputs


def assert_right(made, outputs, expected, schedule):
    allowed = tolerance(made.workload.dtype, made.operator.reduction_length(made.workload))
    for output, right in zip(outputs, expected, strict=True):
        if not output.is_floating_point():
            assert torch.equal(output.double(), right), str(schedule)
            continue
        rms = right.square().mean().sqrt()
        error = (output.double() - right).abs() - allowed.relative * right.abs()
        assert float(error.max()) <= allowed.of_rms * float(rms), str(schedule)


def forget(outputs):
    for output in outputs:
        output.fill_(float("nan") if output.is_floating_point() else -1)


def loaded(made, schedule, folder):
    artifact = GENERATOR.build(made, schedule, folder)
    return GENERATOR.load(made, schedule, artifact, folder), artifact


def long_keys(made, sketch, rng):
    """A schedule whose blocks of keys are longer than its blocks of queries, where a causal mask is easily wrong."""

    def order(prefix, options):
        name = made.space.next_knob(prefix)
        if name in ("block_m", "block_n"):
            wanted = 64 if name == "block_m" else 128
            return sorted(options, key=lambda value: abs(value - wanted))
        return [options[i] for i in rng.permutation(len(options))]

    return made.space.complete(Schedule((("sketch", sketch.name),)), order)


@pytest.mark.parametrize(("operator", "dtype", "axes"), CASES)
def test_every_sketch_is_right(operator, dtype, axes, arch, folder):
    made = task(operator, dtype, axes, arch)
    inputs, outputs = arrays(made)
    expected = made.operator.reference(made.workload, xp, *(i.double() for i in inputs))
    rng = np.random.default_rng(0)
    for sketch in made.sketches.values():
        prefix = Schedule((("sketch", sketch.name),))
        schedules = [sketch.default(made), *(made.space.sample(rng, prefix) for _ in range(RANDOM_SCHEDULES))]
        if operator == "attention":
            schedules.append(long_keys(made, sketch, rng))
        for schedule in schedules:
            kernel, artifact = loaded(made, schedule, folder)
            forget(outputs)
            kernel.bind(inputs, outputs)()
            torch.cuda.synchronize()
            assert_right(made, outputs, expected, schedule)
            assert artifact.resources.registers > 0


@pytest.mark.parametrize(
    "operator",
    [
        "matmul",
        "batched_matmul",
        "linear",
        "gated_linear",
        "int8_linear",
        "fp8_linear",
        "softmax",
        "rms_norm",
        "layer_norm",
        "attention",
        "attention_decode",
    ],
)
def test_a_launch_goes_to_the_current_stream_and_into_a_graph(operator, arch, folder):
    dtype, axes = next((d, a) for o, d, a in CASES if o == operator)
    made = task(operator, dtype, axes, arch)
    inputs, outputs = arrays(made)
    expected = made.operator.reference(made.workload, xp, *(i.double() for i in inputs))
    for sketch in made.sketches.values():
        schedule = sketch.default(made)
        launch = loaded(made, schedule, folder)[0].bind(inputs, outputs)
        launch()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            launch()
        forget(outputs)
        graph.replay()
        torch.cuda.synchronize()
        assert_right(made, outputs, expected, schedule)


def test_what_the_compiler_reports_is_what_the_driver_loads(arch, folder):
    made = task(*CASES[0], arch)
    schedule = made.default
    artifact = GENERATOR.build(made, schedule, folder)

    from triton.runtime.driver import driver

    cubin = next(path for path in folder.rglob("*.cubin") if str(path.parent) == artifact.path)
    _, _, registers, _, _ = driver.active.utils.load_binary(
        cubin.stem, cubin.read_bytes(), artifact.resources.shared_bytes, driver.active.get_current_device()
    )
    assert registers == artifact.resources.registers


def test_loading_compiles_nothing(arch, folder, monkeypatch):
    made = task(*CASES[0], arch)
    artifact = GENERATOR.build(made, made.default, folder)

    from triton.backends.nvidia.compiler import CUDABackend

    monkeypatch.setattr(CUDABackend, "add_stages", lambda *_: pytest.fail("compiled again"))
    GENERATOR.load(made, made.default, artifact, folder)


def test_another_archs_ptx_runs_on_this_device(arch, folder):
    if arch == "sm_80":
        pytest.skip("sm_80 is this device's own")
    made = task("matmul", "float16", {"M": 256, "N": 256, "K": 256}, "sm_80")
    inputs, outputs = arrays(made)
    artifact = GENERATOR.build(made, made.default, folder)
    GENERATOR.load(made, made.default, artifact, folder).bind(inputs, outputs)()
    expected = inputs[0].double() @ inputs[1].double()
    assert float((outputs[0].double() - expected).abs().max()) < 0.1
