"""Which device is the reference, and what becomes of the others."""

from dataclasses import dataclass

import pytest

from autotune.device_comparison import Comparison, difference
from autotune.devices.base import DeviceInfo
from autotune.worker import Identified

INFO = DeviceInfo("cuda", "a GPU", "sm_90", 132, 80 << 30, "550")


@dataclass(eq=False)
class Device:
    """As much of a device worker as a comparison asks."""

    label: str
    default_samples: tuple[float, ...] | None = None
    factor: float | None = None

    def times(self, seconds, noise=0.001):
        self.default_samples = tuple(seconds * (1.0 + noise * (i % 5 - 2)) for i in range(7))


@pytest.fixture
def devices():
    return [Device(name) for name in "abcde"]


def test_the_middle_one_of_most_is_the_reference_and_nobody_waits_for_the_rest(devices):
    comparison = Comparison()
    devices[0].times(1.08)
    devices[1].times(1.0)
    assert comparison.settle(devices) == [], "two of five are not most"
    devices[2].times(1.02)
    news = {n.device: n.factor for n in comparison.settle(devices)}
    assert comparison.first is devices[2]
    assert news == {"a": pytest.approx(1.02 / 1.08), "b": pytest.approx(1.02), "c": 1.0}
    devices[3].times(1.021)
    (late,) = comparison.settle(devices)
    assert (late.device, late.factor, late.notice) == ("d", 1.0, "")
    devices[4].times(1.3)
    (off,) = comparison.settle(devices)
    assert off.left_out.startswith("the untuned default takes 1.27 times as long")
    assert devices[4].factor is None


def test_a_difference_within_the_noise_is_none(devices):
    comparison = Comparison()
    pair = devices[:2]
    pair[0].times(1.0, noise=0.03)
    pair[1].times(1.02, noise=0.03)
    assert {n.factor for n in comparison.settle(pair)} == {1.0}


def test_who_has_measured_candidates_already_is_the_reference(devices):
    comparison = Comparison()
    alone, came = devices[:2]
    assert not comparison.is_due(alone, [alone])
    assert alone.factor == 1.0
    assert comparison.is_due(came, [alone, came])
    came.times(0.95)
    assert comparison.settle([alone, came]) == []
    alone.times(1.0)
    (news,) = comparison.settle([alone, came])
    assert comparison.first is alone
    assert (news.device, news.factor) == ("b", pytest.approx(1 / 0.95))


def test_devices_on_which_the_default_fails_everywhere_are_taken_for_equal(devices):
    comparison = Comparison()
    for device in devices:
        device.default_samples = ()
    assert comparison.settle(devices) == []
    assert {d.factor for d in devices} == {1.0}
    came = Device("f")
    assert not comparison.is_due(came, [*devices, came])
    assert came.factor == 1.0


def test_a_difference_is_told_by_its_name():
    like = Identified(INFO, "1", {"MIG": "off", "power limit": "700 W"})
    assert difference(like, Identified(INFO, "2", {"MIG": "off", "power limit": "700 W"})) == ""
    other = Identified(DeviceInfo("cuda", "a GPU", "sm_90", 132, 141 << 30, "550"), "2", {"MIG": "off"})
    assert difference(like, other) == "memory 80 GiB and 141 GiB, power limit 700 W and unknown"
