"""Triton's own Autotuner takes the exported configurations, and times none of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.exporting import export
from autotune.recall import recall
from autotune.reuse.triton import FILE, TunedConfigs, read_configs
from search_spaces.errors import BadLog, NothingValid
from search_spaces.registry import load_file

triton = pytest.importorskip("triton")
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.runtime.driver import driver  # noqa: E402

tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
kernels = pytest.importorskip("search_spaces.kernels.matmul")
SHAPE = {"M": 1024, "N": 512, "K": 256}
PLAIN = {"BATCH": 1, "TRANS_B": False, "SCALED": False, "BIAS": False, "RESIDUAL": False, "ACTIVATION": 0, "PROMOTE": 0}


class NoGpu:
    """A driver that only says what it is for."""

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)


@pytest.fixture(autouse=True)
def sm_90():
    before = driver._active
    driver.set_active(NoGpu())
    yield
    driver._active = before


@pytest.fixture(scope="module")
def entry():
    return tuned.entry_on(tuned.H200, "matmul", "triton.matmul_tiled", axes=SHAPE, seed=4)


@pytest.fixture(scope="module")
def exported(entry, tmp_path_factory):
    folder = tmp_path_factory.mktemp("triton") / "out"
    export([entry], "triton", folder)
    return folder / FILE


def autotuner(path, monkeypatch, *, tunable=("BLOCK_M", "BLOCK_N", "BLOCK_K", "STORE_VECTOR", "group", "columns"), **o):
    """Our kernel under Triton's Autotuner, with two configurations of its own, and what it is launched with."""
    launched, notices = [], []
    dummies = [triton.Config(dict.fromkeys(tunable, value)) for value in (16, 32)]
    options = TunedConfigs.read(path, "matmul", notice=notices.append, **o).autotune_options()
    tuner = triton.autotune(configs=dummies, key=["M", "N", "K"], **options)(kernels.tiled)
    monkeypatch.setattr(kernels.tiled, "run", lambda *a, **k: launched.append(k), raising=False)
    return tuner, launched, notices


def call(tuner, **shape):
    tuner.run("a", "b", "c", "bias", "residual", "row_scale", "column_scale", grid=(1,), warmup=False, **shape, **PLAIN)


def test_the_autotuner_launches_the_tuned_configuration_and_times_nothing(exported, entry, monkeypatch):
    tuner, launched, notices = autotuner(exported, monkeypatch)
    for _ in range(2):
        call(tuner, **SHAPE)
    winner = recall(entry)
    launch = winner.task.sketch_of(winner.schedule).launch(winner.task, winner.schedule)
    assert len(launched) == 2, "each call is a launch, and there is no other"
    for made in launched:
        assert {name: made[name] for name in launch.constants} == dict(launch.constants)
        assert (made["num_warps"], made["num_stages"]) == (launch.num_warps, launch.num_stages)
        assert (made["group"], made["columns"]) == (
            launch.arguments["group"].value,
            launch.arguments["columns"].value,
        )
    assert notices == []


def test_the_nearest_shape_serves_and_is_said(exported, monkeypatch):
    tuner, launched, notices = autotuner(exported, monkeypatch)
    call(tuner, M=1000, N=512, K=256)
    assert len(launched) == 1
    assert notices == ["M=1000,N=512,K=256,trans_b=0 was not tuned; the nearest, M=1024,N=512,K=256,trans_b=0, is used"]


def test_without_the_nearest_an_untuned_shape_is_benchmarked_as_ever(exported, monkeypatch):
    tuner, launched, _ = autotuner(exported, monkeypatch, nearest=False)
    timed = []
    monkeypatch.setattr("triton.testing.do_bench", lambda call, quantiles: timed.append(call()) or [1.0] * 3)
    call(tuner, M=1000, N=512, K=256)
    assert len(timed) == 2
    assert len(launched) == 3


def test_the_nearest_of_several_is_taken(entry, tmp_path):
    other = tuned.entry_on(tuned.H200, "matmul", "triton.matmul_tiled", axes={"M": 64, "N": 64, "K": 64}, seed=9)
    export([entry, other], "triton", tmp_path / "out")
    configs = TunedConfigs.read(tmp_path / "out" / FILE, "matmul", notice=lambda _: None)
    dummy = [triton.Config({"BLOCK_M": 1})]
    for shape, near in (({"M": 100, "N": 60, "K": 64}, other), ({"M": 2048, "N": 512, "K": 256}, entry)):
        assert configs.chosen(dummy, shape).kwargs == {"BLOCK_M": near.schedule["block_m"]}


def test_other_names_are_said_once(exported, monkeypatch):
    names = {"BLOCK_M": "BLOCK_N", "BLOCK_N": "BLOCK_M"}
    tuner, launched, _ = autotuner(exported, monkeypatch, names=names)
    call(tuner, **SHAPE)
    (config,) = read_configs(exported).configs
    assert launched[0]["BLOCK_M"] == config.config.kwargs["BLOCK_N"]


def test_a_kernel_that_tunes_something_else_keeps_its_own(exported):
    notices = []
    configs = TunedConfigs.read(exported, "matmul", notice=notices.append)
    assert configs.chosen([triton.Config({"SPLIT_K": 2})], SHAPE) is None
    assert configs.chosen([triton.Config({"BLOCK_M": 2})], {"M": 1, "N": 1}) is None
    assert "SPLIT_K" in notices[0]
    assert "axis K" in notices[1]


def test_another_arch_gets_none(exported):
    class Other(NoGpu):
        def get_current_target(self):
            return GPUTarget("cuda", 80, 32)

    driver.set_active(Other())
    notices = []
    configs = TunedConfigs.read(exported, "matmul", notice=notices.append)
    assert configs.chosen([triton.Config({"BLOCK_M": 2})], SHAPE) is None
    assert "arch" in notices[0]


def test_another_device_of_the_arch_is_said(exported):
    notices = []
    configs = TunedConfigs.read(exported, "matmul", notice=notices.append, device="NVIDIA H100 PCIe")
    assert configs.chosen([triton.Config({"BLOCK_M": 2})], SHAPE) is not None
    assert "tuned on NVIDIA H200" in notices[0]


def test_what_was_measured_on_a_foreign_device_is_left_out(entry, tmp_path):
    foreign = tuned.entry_on(
        replace(tuned.H200, arch="sm_90"), "matmul", "triton.matmul_tiled", axes=SHAPE, foreign=True
    )
    with pytest.raises(NothingValid, match="another arch"):
        export([foreign], "triton", tmp_path / "out")


def test_an_operator_that_is_not_there_is_told(exported):
    with pytest.raises(BadLog, match="no configuration of softmax"):
        TunedConfigs.read(exported, "softmax")


def told_or_read(path):
    """A line where it is refused."""
    try:
        read_configs(path)
    except BadLog as error:
        return str(error)
    return ""


@settings(deadline=None)
@given(st.data())
def test_any_damage_is_one_line(exported, tmp_path_factory, data):
    whole = bytearray(exported.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    damaged = tmp_path_factory.getbasetemp() / "damaged.json"
    damaged.write_bytes(whole)
    assert "\n" not in told_or_read(damaged)


@settings(deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_is_read_or_told(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps({"schema": "triton-configs/1", "triton": "", "configs": value}))
    assert "\n" not in told_or_read(path)
