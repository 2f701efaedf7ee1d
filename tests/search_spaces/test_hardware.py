import pickle

import pytest

from search_spaces.amd import HIP_MODELS, hip_hardware
from search_spaces.errors import UnknownName
from search_spaces.hardware import CUDA_LIMITS, DEVICE_MODELS, cpu_hardware, cuda_hardware, cuda_limits


@pytest.mark.parametrize("arch", CUDA_LIMITS)
def test_every_arch_has_limits_and_a_representative_model(arch):
    hardware = cuda_hardware(arch)
    limits = hardware.limits
    assert limits.arch == hardware.model.arch == arch
    assert 0 < limits.shared_per_block <= limits.shared_per_sm
    assert limits.threads_per_block <= limits.threads_per_sm
    assert limits.source


@pytest.mark.parametrize("model", DEVICE_MODELS, ids=lambda m: m.name)
def test_every_model_has_an_arch_and_plausible_peaks(model):
    assert model.arch in CUDA_LIMITS
    assert 0.1e12 < model.bandwidth < 20e12
    assert model.peak["float16"] >= model.peak["tf32"] >= model.peak["float32"] > 0
    assert model.source


def test_published_limits():
    assert cuda_limits("sm_80").shared_per_block == 163 * 1024
    assert cuda_limits("sm_90").shared_per_block == 227 * 1024
    assert cuda_limits("sm_90").tma
    assert not cuda_limits("sm_80").tma


def test_suffixes_change_no_limit():
    assert cuda_limits("sm_90a") == cuda_limits("sm_90")
    assert cuda_limits("sm_100f") == cuda_limits("sm_100")
    with pytest.raises(UnknownName, match="did you mean 'sm_90'"):
        cuda_limits("sm_90aa")


def test_a_named_device_sets_the_peaks():
    assert cuda_hardware("sm_90", "NVIDIA H200").model.bandwidth == 4.8e12
    assert cuda_hardware("sm_90", "an unlisted card").model == cuda_hardware("sm_90").model


def test_a_dtype_without_a_published_peak_falls_back_to_float32():
    hardware = cpu_hardware("some cpu", cores=4, l3_bytes=2**23, bandwidth=2e10, peak={"float32": 1e11})
    assert hardware.peak("float16") == 1e11
    assert hardware.limits.shared_per_block == 0


def test_hardware_travels():
    hardware = cuda_hardware("sm_90", "NVIDIA H200")
    assert pickle.loads(pickle.dumps(hardware)) == hardware
    assert hash(hardware) == hash(cuda_hardware("sm_90", "NVIDIA H200"))


@pytest.mark.parametrize("arch", HIP_MODELS)
def test_every_amd_arch_that_is_compiled_for_has_limits_and_a_model(arch):
    hardware = hip_hardware(arch)
    assert hardware.limits.arch == hardware.model.arch == arch
    assert hardware.limits.warp == 64
    assert not hardware.limits.tma
    assert hardware.peak("float16") > hardware.peak("float32")


def test_an_unknown_amd_arch_is_named():
    with pytest.raises(UnknownName, match="did you mean 'gfx942'"):
        hip_hardware("gfx943")
