"""TVM's sketches on a real GPU: right results through the same worker-side calls as Triton's, on torch's stream."""

import numpy as np
import pytest

from autotune.checking import tolerance
from autotune.generators.base import BuildError
from autotune.generators.tvm import GENERATOR
from search_spaces.errors import InvalidSchedule
from search_spaces.hardware import cuda_hardware
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")
xp = pytest.importorskip("array_api_compat.torch")
pytest.importorskip("tvm")

CASES = [
    ("matmul", "float16", {"M": 256, "N": 512, "K": 128}),
    ("matmul", "float32", {"M": 256, "N": 192, "K": 64}),
    ("softmax", "float16", {"M": 300, "N": 1024}),
    ("softmax", "float32", {"M": 128, "N": 512}),
]


@pytest.fixture(scope="module")
def arch():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "sm_{}{}".format(*torch.cuda.get_device_capability())


@pytest.mark.parametrize(("operator", "dtype", "axes"), CASES)
def test_sampled_schedules_are_right(operator, dtype, axes, arch, tmp_path):
    workload = find_operator(operator).workload("cuda", dtype, **axes)
    made = Task(operator, workload, Target("cuda", arch), cuda_hardware(arch), ("tvm.",))
    specs = made.operator.tensors(workload)
    inputs = [torch.randn(t.shape, device="cuda").to(getattr(torch, dtype)) for t in specs if not t.output]
    outputs = [torch.empty(t.shape, device="cuda", dtype=getattr(torch, dtype)) for t in specs if t.output]
    (expected,) = made.operator.reference(workload, xp, *(i.double() for i in inputs))
    allowed = tolerance(dtype, made.operator.reduction_length(workload))
    rms = expected.square().mean(dim=-1, keepdim=True).sqrt()
    rng = np.random.default_rng(0)
    right = 0
    for schedule in [made.default, *(made.space.sample(rng) for _ in range(6))]:
        try:
            artifact = GENERATOR.build(made, schedule, tmp_path)
        except (BuildError, InvalidSchedule):
            continue
        launch = GENERATOR.load(made, schedule, artifact, tmp_path).bind(inputs, outputs)
        outputs[0].fill_(float("nan"))
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            launch()
        side.synchronize()
        error = (outputs[0].double() - expected).abs() / (allowed.relative * expected.abs() + allowed.of_rms * rms)
        assert float(error.max()) <= 1.0, str(schedule)
        right += 1
    assert right >= 2
