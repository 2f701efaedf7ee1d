"""Warm-up, dropping, retaking and the order of rounds, on a device whose samples are given."""

import math

import pytest

from autotune.devices.telemetry import Conditions
from autotune.measurement import Policy
from autotune.timing import Timer

CALM = Conditions(1980, 3201, 600.0, 60, "sw_power_cap")
SLOWED = Conditions(900, 3201, 200.0, 95, "hw_thermal_slowdown", slowed=True)


class ScriptedDevice:
    """Gives samples from a list, then the last one again and again."""

    def __init__(self, samples=(), conditions=()):
        self.script = list(samples)
        self.states = list(conditions)
        self.calls = []
        self.compacted = []

    def time(self, launches, cold, written):
        self.calls.append(list(launches))
        return [launch() or self._next() for launch in launches]

    def _next(self):
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def conditions(self):
        return self.states.pop(0) if self.states else None

    def compact(self, launch):
        self.compacted.append(launch)
        return launch


def nothing():
    return None


def taken(device, limit=math.inf, samples=3):
    return Timer(device, Policy(samples=samples), 0).samples(nothing, limit)


def test_samples_start_when_two_in_a_row_agree():
    assert taken(ScriptedDevice([9e-4, 7e-4, 5e-4, 5.1e-4, 5e-4])).seconds == (5e-4, 5e-4, 5e-4)


def test_a_warm_up_ends_even_if_nothing_agrees():
    device = ScriptedDevice([1e-4 * 2**i for i in range(20)])
    assert len(taken(device).seconds) == 3
    assert len(device.calls) == 7


def test_long_samples_of_the_warm_up_count():
    assert taken(ScriptedDevice([0.03, 0.02, 0.0201, 0.0202])).seconds == (0.02, 0.0201, 0.0202)


def test_two_slow_samples_drop_a_candidate_and_one_does_not():
    assert taken(ScriptedDevice([2e-4, 2.2e-4]), limit=1e-4).seconds == (2e-4,)
    assert taken(ScriptedDevice([2e-4, 0.9e-4, 0.9e-4]), limit=1e-4).seconds == (0.9e-4,) * 3


def test_a_slowed_device_is_timed_once_more_and_the_record_says_so():
    found = taken(ScriptedDevice([1e-4], [SLOWED, CALM]))
    assert found.conditions.retaken
    assert not found.conditions.slowed
    assert taken(ScriptedDevice([1e-4], [SLOWED, SLOWED])).conditions.slowed


def test_a_power_cap_is_recorded_and_no_reason_to_retake():
    device = ScriptedDevice([1e-4], [CALM])
    found = taken(device)
    assert found.conditions == CALM
    assert len(device.calls) == 3


def test_only_short_launches_are_compacted():
    short, longer = ScriptedDevice([5e-6]), ScriptedDevice([5e-5])
    taken(short)
    taken(longer)
    assert len(short.compacted) == 1
    assert not longer.compacted


def test_rounds_hold_everyone_once_and_the_anchor_is_first_and_last():
    device = ScriptedDevice()
    launches = [lambda i=i: float(i + 1) for i in range(4)]
    times = Timer(device, Policy(), 0).rounds(launches, 5, 0, anchor=2)
    assert times == [[float(i + 1)] * 5 for i in range(4)]
    order = [launches.index(launch) for launch in device.calls[-1]]
    assert order[0] == order[-1] == 2
    assert all(sorted(order[i : i + 4]) == [0, 1, 2, 3] for i in range(0, 20, 4))


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_that_of_the_seed(seed):
    orders = []
    for _ in range(2):
        device = ScriptedDevice()
        launches = [lambda i=i: float(i + 1) for i in range(4)]
        Timer(device, Policy(), 0).rounds(launches, 5, seed)
        orders.append([launches.index(launch) for launch in device.calls[-1]])
    assert orders[0] == orders[1]
