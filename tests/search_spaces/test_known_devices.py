"""Devices are known by the names that files and drivers give them."""

import pytest

from search_spaces.hardware import DEVICE_MODELS, cuda_hardware
from search_spaces.known_devices import find_device

NAMES = {
    "a100": "NVIDIA A100-PCIE-40GB",
    "a4000": "NVIDIA RTX A4000",
    "a6000": "NVIDIA RTX A6000",
    "h200": "NVIDIA H200",
    "mi250x": "AMD Instinct MI250X",
    "rtx2080ti": "NVIDIA GeForce RTX 2080 Ti",
    "RTX_2080_Ti": "NVIDIA GeForce RTX 2080 Ti",
    "rtx3060_laptop": "NVIDIA GeForce RTX 3060 Laptop GPU",
    "rtx3060": "NVIDIA GeForce RTX 3060",
    "rtx3090": "NVIDIA GeForce RTX 3090",
    "titanrtx": "NVIDIA TITAN RTX",
    "w6600": "AMD Radeon PRO W6600",
    "W7800": "AMD Radeon PRO W7800",
    "l4": "NVIDIA L4",
    "t4": "Tesla T4",
    "v100": "Tesla V100-SXM2-32GB",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_short_name_finds_its_model(name):
    assert find_device(name).model.name == NAMES[name]


@pytest.mark.parametrize("model", DEVICE_MODELS, ids=lambda m: m.name)
def test_a_full_name_finds_itself(model):
    assert find_device(model.name).model == model


@pytest.mark.parametrize("name", ["", "a1", "rtx", "NVIDIA", "rtx30900", "coulomb"])
def test_no_device_is_guessed(name):
    assert find_device(name) is None


def test_wavefronts_and_warps():
    assert [find_device(n).limits.warp for n in ("mi250x", "w6600", "a100")] == [64, 32, 32]


def test_the_model_of_an_arch_is_still_ours():
    assert cuda_hardware("sm_75").model.name == "Tesla T4"
    assert cuda_hardware("sm_86").model.name == "NVIDIA GeForce RTX 3090"
