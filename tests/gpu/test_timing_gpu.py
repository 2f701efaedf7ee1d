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


def another_stream(x):
    side = torch.cuda.Stream()

    def launch():
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            x.add(1)

    return launch


def left_on_another_stream(x):
    side = torch.cuda.Stream()

    def launch():
        torch.cuda.set_stream(side)
        x.add(1)

    return launch


def python_error(x):
    def launch():
        x.add(1)
        raise RuntimeError("no such kernel")

    return launch


FAILING = [lambda x: lambda: float((x + 1).sum()), another_stream, left_on_another_stream, python_error]


@pytest.mark.parametrize("make", FAILING, ids=["waits", "another stream", "left on another stream", "python error"])
def test_a_failed_capture_leaves_the_process_as_it_was(device, make):
    x = torch.randn(4 << 20, device="cuda")
    launch = make(x)
    assert device.compact(launch) is launch
    stream = torch.cuda.current_stream()
    torch.cuda.empty_cache()
    reserved = torch.cuda.memory_reserved()
    for _ in range(3):
        assert device.compact(launch) is launch
    assert torch.cuda.current_stream() == stream
    assert not torch.cuda.is_current_stream_capturing()
    torch.cuda.manual_seed(7)
    first = torch.randn(16, device="cuda")
    torch.cuda.manual_seed(7)
    assert torch.equal(torch.randn(16, device="cuda"), first)
    del first
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved, "the pools of failed captures are given back"
    y = torch.empty_like(x)
    graph = device.compact(lambda: torch.add(x, 1, out=y))
    y.fill_(float("nan"))
    graph()
    torch.cuda.synchronize()
    assert torch.equal(y, x + 1)


def test_the_state_of_the_device_comes_with_the_samples(device):
    x = torch.randn(2048, 2048, device="cuda")
    found = Timer(device, Policy(), x.nbytes).samples(lambda: x @ x, float("inf"))
    assert len(found.seconds) == 7
    assert found.conditions is None or found.conditions.sm_mhz > 0


def test_the_device_says_who_it_is(device):
    assert len(device.uuid()) >= 32
