"""Events, graphs and NVML on a real GPU."""

import numpy as np
import pytest

from autotune.devices.cuda import Cuda
from autotune.measurement import Policy
from autotune.timing import Timer

pytestmark = pytest.mark.gpu
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def device():
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return Cuda()


def test_a_short_launch_is_captured_and_still_does_its_work(device):
    x, y = torch.randn(4096, device="cuda"), torch.empty(4096, device="cuda")
    graph = device.compact(lambda: torch.add(x, 1, out=y))
    y.fill_(float("nan"))
    graph()
    torch.cuda.synchronize()
    assert torch.equal(y, x + 1)
    assert np.median(device.time([graph] * 50, True)) < 1e-4


def test_what_cannot_be_captured_is_timed_as_it_is(device):
    x = torch.randn(4096, device="cuda")

    def waits():
        return float(x.sum())

    assert device.compact(waits) is waits
    assert float(x.add(0).sum()) == pytest.approx(waits())


def test_the_state_of_the_device_comes_with_the_samples(device):
    x = torch.randn(2048, 2048, device="cuda")
    found = Timer(device, Policy()).samples(lambda: x @ x, float("inf"))
    assert len(found.seconds) == 7
    assert found.conditions is None or found.conditions.sm_mhz > 0


def test_the_device_says_who_it_is(device):
    assert len(device.uuid()) >= 32
