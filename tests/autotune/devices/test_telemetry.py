"""What NVML says becomes a compact record; a device that says nothing is no failure."""

import pytest

from autotune.devices import telemetry
from autotune.devices.telemetry import Telemetry, named_reasons, open_telemetry


class FakeNvml:
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self, bits=0x4, broken=False):
        self.bits, self.broken = bits, broken

    def nvmlInit(self):  # noqa: N802
        if self.broken == "init":
            raise self.NVMLError("no driver")

    def nvmlDeviceGetHandleByUUID(self, uuid):  # noqa: N802
        return uuid

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle):  # noqa: N802
        if self.broken:
            raise self.NVMLError("not supported")
        return self.bits

    def nvmlDeviceGetClockInfo(self, handle, kind):  # noqa: N802
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetPowerUsage(self, handle):  # noqa: N802
        return 653_210

    def nvmlDeviceGetTemperature(self, handle, kind):  # noqa: N802
        return 61


@pytest.fixture
def use(monkeypatch):
    def install(nvml):
        monkeypatch.setattr(telemetry.registry, "optional", lambda *_: nvml)
        monkeypatch.setattr(telemetry.registry, "available", lambda _: True)

    return install


def test_the_state_of_a_device(use):
    use(FakeNvml())
    state = Telemetry("1234").read()
    assert (state.sm_mhz, state.memory_mhz, state.watts, state.celsius) == (1980, 3201, 653.21, 61)
    assert state.reasons == "sw_power_cap"
    assert not state.slowed


@pytest.mark.parametrize(("bits", "slowed"), [(0x0, False), (0x1, False), (0x4, False), (0x20, True), (0x48, True)])
def test_heat_and_hardware_slow_a_device_and_a_power_cap_does_not(use, bits, slowed):
    use(FakeNvml(bits))
    assert Telemetry("1234").read().slowed is slowed


def test_reasons_are_named():
    assert named_reasons(0x44) == "sw_power_cap+hw_thermal_slowdown"
    assert not named_reasons(0x1)


def test_a_driver_that_does_not_tell(use):
    use(FakeNvml(broken=True))
    assert Telemetry("1234").read() is None
    use(FakeNvml(broken="init"))
    assert open_telemetry("1234") is None
    assert open_telemetry("") is None
