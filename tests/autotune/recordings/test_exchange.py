"""Kernel Tuner's cache and T4: what is written is read again, also by Kernel Tuner itself where it is installed."""

import gzip
import json
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measurement import Status
from autotune.recordings.finding import read_recording
from autotune.recordings.foreign import plain, value_of
from autotune.recordings.kernel_tuner import read_kernel_tuner, write_kernel_tuner
from autotune.recordings.t4 import read_t4, write_t4
from search_spaces.errors import BadLog

NEEDS_KERNEL_TUNER = pytest.mark.skipif(find_spec("kernel_tuner") is None, reason="needs kernel_tuner")
FORMATS = {"kernel_tuner": (write_kernel_tuner, read_kernel_tuner), "t4": (write_t4, read_t4)}
COMPILE, RUN = "CompilationFailedConfig", "RuntimeFailedConfig"


def cache(**changes):
    """A cache as Kernel Tuner writes one."""
    rows = {
        "16,1,15": {"bx": 16, "pad": 1, "fw": 15, "time": 2.0, "times": [2.5, 1.75, 1.75], "compile_time": 900.0},
        "32,0,15": {"bx": 32, "pad": 0, "fw": 15, "time": COMPILE, "compile_time": 100.0},
        "32,1,15": {"bx": 32, "pad": 1, "fw": 15, "time": 1.0, "times": [1.0, 1.0, 1.0], "benchmark_time": 3.0},
        "64,1,15": {"bx": 64, "pad": 1, "fw": 15, "time": RUN},
        "64,0,15": {"bx": 64, "pad": 0, "fw": 15, "time": "InvalidConfig"},
    }
    return {
        "device_name": "NVIDIA A100-PCIE-40GB",
        "kernel_name": "convolution_kernel",
        "problem_size": [4096, 4096],
        "tune_params_keys": ["bx", "pad", "fw"],
        "tune_params": {"bx": [16, 32, 64], "pad": [0, 1], "fw": [15]},
        "objective": "time",
        "cache": rows,
        **changes,
    }


def text(data):
    return json.dumps(data, indent="")


def read(tmp_path, content, name="A100.json"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_recording(path)


def test_a_cache_of_kernel_tuner_becomes_a_recording(tmp_path):
    found = read(tmp_path, text(cache()))
    assert (found.kernel, found.device) == ("convolution", "NVIDIA A100-PCIE-40GB")
    assert [s.knobs for s in found.space.schedules] == [
        {"bx": 16, "pad": 1},
        {"bx": 32, "pad": 0},
        {"bx": 32, "pad": 1},
        {"bx": 64, "pad": 1},
    ]
    assert found.status == (Status.OK, Status.BUILD_ERROR, Status.OK, Status.LAUNCH_ERROR)
    np.testing.assert_allclose(found.seconds, [2e-3, math.inf, 1e-3, math.inf])
    np.testing.assert_allclose(found.samples[0], [2.5e-3, 1.75e-3, 1.75e-3])
    np.testing.assert_allclose(found.cost, [0.9, 0.1, 0.003, 0.0])
    assert json.loads(found.provenance["constants"]) == {"fw": 15}
    assert found.context["device units"] == math.log2(108)
    assert found.context["operations"] == math.log2(2 * 4096**2 * 15**2)


def test_repeats_that_disagree_with_the_time_are_left_out(tmp_path):
    data = cache()
    data["cache"]["16,1,15"]["time"] = 4.0
    found = read(tmp_path, text(data))
    assert not found.samples
    assert found.seconds[0] == pytest.approx(4e-3)


def test_a_packed_cache_is_read(tmp_path):
    assert len(read(tmp_path, gzip.compress(text(cache()).encode()), "a.json.gz").status) == 4


@pytest.mark.parametrize("cut", ["open", "torn line"])
def test_a_cache_that_a_run_still_writes_is_read_as_far_as_it_is_whole(tmp_path, cut):
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in cache()["cache"].items()]
    head = text(cache(cache={}))[: -len("}\n}")].rstrip("}\n")
    whole = head + "\n" + ",\n".join(lines[:3]) + ","
    left = whole if cut == "open" else whole + "\n" + lines[3][:25]
    assert len(read(tmp_path, left).status) == 3


BROKEN = {
    "no JSON": "{nothing",
    "another JSON": '{"a": 1}',
    "a list": "[1, 2]",
    "empty": "",
    "keys of another type": text(cache(tune_params_keys=3)),
    "a parameter that rows lack": text(cache(tune_params_keys=["bx", "pad", "missing"])),
    "no configurations": text(cache(cache={})),
    "a row that is none": text(cache(cache={"1": 3})),
    "an object as a value": text(cache(cache={"1": {"bx": {"a": 1}, "pad": 1, "fw": 1, "time": 1.0}})),
    "only failures": text(cache(cache={"1": {"bx": 1, "pad": 1, "fw": 1, "time": RUN}})),
    "deep": '{"cache":' + "[" * 100_000,
    "T4 without results": '{"results": []}',
    "T4 in moons": '{"metadata": {"timeunit": "moons"}, "results": [{"configuration": {}, "invalidity": "correct"}]}',
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_broken_is_said_in_one_line(tmp_path, name):
    with pytest.raises(BadLog) as caught:
        read(tmp_path, BROKEN[name])
    assert "\n" not in str(caught.value)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_gives_a_recording_or_one_line(tmp_path, told, data):
    content = bytearray(text(cache()).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=4))
    (tmp_path / "a").write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    found = told(read_recording, tmp_path / "a")
    assert found is None or found.optimum > 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.sampled_from(["cache", "tune_params", "tune_params_keys", "device_name", "row", "results"]), value=JSON)
def test_any_value_in_any_place_gives_a_recording_or_one_line(tmp_path, told, place, value):
    data = cache()
    if place == "row":
        data["cache"]["16,1,15"] = value
    else:
        data[place] = value
        data = {"results": value, "metadata": {}} if place == "results" else data
    (tmp_path / "a").write_text(json.dumps(data))
    found = told(read_recording, tmp_path / "a")
    assert found is None or found.optimum > 0


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_two_sketches_with_tuples_words_and_flags_survive(recording, tmp_path, form, ending):
    write, back = FORMATS[form]
    path = tmp_path / f"made__h200.{ending}"
    write(recording, path)
    found = back(path)
    assert found.space.schedules == recording.space.schedules
    assert found.device == recording.device
    np.testing.assert_allclose(found.seconds, recording.seconds, rtol=1e-6)
    for one, other in zip(found.samples, recording.samples, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    kept = {Status.OK, Status.BUILD_ERROR} | ({Status.WRONG_RESULT, Status.TIMEOUT} if form == "t4" else set())
    pairs = list(zip(found.status, recording.status, strict=True))
    assert all(one is other for one, other in pairs if other in kept)
    assert all((one is Status.OK) == (other is Status.OK) for one, other in pairs)


@pytest.mark.parametrize("form", FORMATS)
def test_equal_recordings_give_equal_files(recording, tmp_path, form):
    for name in ("a.json.gz", "b.json.gz"):
        FORMATS[form][0](recording, tmp_path / name)
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()


@given(st.tuples(st.integers(-9, 99)) | st.lists(st.integers(-9, 99), min_size=1, max_size=4).map(tuple))
def test_a_tuple_survives_as_a_word(value):
    assert value_of(plain(value)) == value


@NEEDS_KERNEL_TUNER
def test_kernel_tuner_reads_the_cache(recording, tmp_path):
    from kernel_tuner.util import read_cache

    path = tmp_path / "made__h200.json"
    write_kernel_tuner(recording, path)
    found = read_cache(str(path), open_cache=False)
    assert found["device_name"] == recording.device
    rows = list(found["cache"].values())
    assert len(rows) == len(recording.status)
    for row, status, seconds in zip(rows, recording.status, recording.seconds, strict=True):
        assert ("__error__" in row) == (status is not Status.OK)
        assert status is not Status.OK or row["time"] == pytest.approx(seconds * 1e3)


@NEEDS_KERNEL_TUNER
def test_kernel_tuner_takes_the_t4_file_for_valid(recording, tmp_path):
    import jsonschema
    from kernel_tuner.file_utils import output_file_schema

    path = tmp_path / "made__h200.json"
    write_t4(recording, path)
    jsonschema.validate(json.loads(path.read_text()), output_file_schema("results")[1])


@NEEDS_KERNEL_TUNER
def test_kernel_tuner_searches_the_cache_in_simulation(recording, tmp_path):
    import kernel_tuner

    path = tmp_path / "made__h200.json"
    write_kernel_tuner(recording, path)
    data = json.loads(Path(path).read_text())
    legal = set(data["cache"])
    names = data["tune_params_keys"]

    def listed(values):
        return ",".join(str(values[n]) for n in names) in legal

    results, _ = kernel_tuner.tune_kernel(
        data["kernel_name"],
        "__global__ void made(float *a) {}",
        data["problem_size"],
        [np.zeros(4, np.float32)],
        data["tune_params"],
        restrictions=listed,
        simulation_mode=True,
        cache=str(path),
        lang="CUDA",
        verbose=False,
    )
    good = [r["time"] for r in results if isinstance(r["time"], float)]
    assert min(good) == pytest.approx(recording.optimum * 1e3)
