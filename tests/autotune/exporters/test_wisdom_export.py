"""Wisdom files, as the rules of Kernel Launcher read them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.exporters.wisdom import chosen, file_of, tuning_key
from autotune.exporting import export
from autotune.recall import recall
from search_spaces.errors import NothingValid
from search_spaces.registry import load_file

tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
H100 = replace(tuned.H200, name="NVIDIA H100 PCIe")


def matmul(device=tuned.H200, seed=1, m=512, **fields):
    axes = {"M": m, "N": 256, "K": 128}
    return tuned.entry_on(device, "matmul", "triton.matmul_tiled", axes=axes, seed=seed, **fields)


@pytest.fixture
def exported(tmp_path):
    entries = [matmul(), matmul(m=2048, seed=2), matmul(H100, seed=3)]
    made = export(entries, "wisdom", tmp_path / "out")
    assert "did not read these files" in made.notes[0]
    return tmp_path / "out", [recall(e) for e in entries]


def asked(folder, winner, device="NVIDIA H200", problem=(512, 256, 128), parameters=None):
    return chosen(folder, tuning_key(winner), parameters or list(winner.schedule.knobs), device, problem)


def test_a_file_has_a_header_and_a_line_a_winner(exported):
    folder, (winner, *_) = exported
    key = tuning_key(winner)
    assert key == "matmul-trans_b0-float16-triton.matmul_tiled"
    header, first, *rest = map(json.loads, (folder / file_of(key)).read_text().splitlines())
    names = list(winner.schedule.knobs)
    assert header == {"version": "1.0", "objective": "time", "tunable_parameters": names, "key": key}
    assert first["config"] == list(winner.schedule.knobs.values())
    assert first["problem_size"] == [512, 256, 128]
    assert first["environment"] == {"device_name": "NVIDIA H200"}
    assert first["time"] == pytest.approx(winner.entry.seconds * 1e3)
    assert len(rest) == 2


def test_device_goes_before_problem_and_problem_before_the_nearest(exported):
    folder, (small, large, elsewhere) = exported
    assert asked(folder, small).exact
    assert asked(folder, small, problem=(1900, 256, 128)).config == large.schedule.knobs
    assert asked(folder, small, problem=(500, 256, 128)).config == small.schedule.knobs
    assert asked(folder, small, "NVIDIA H100 PCIe", (9000, 256, 128)).config == elsewhere.schedule.knobs
    far = asked(folder, small, "NVIDIA A100", (2048, 256, 128))
    assert (far.config, far.exact) == (large.schedule.knobs, False)


def test_a_bad_header_loses_the_file_and_a_bad_line_itself(exported):
    folder, (winner, *_) = exported
    path = folder / file_of(tuning_key(winner))
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, "{", "[1]", json.dumps({"config": [1]}), *lines]))
    assert asked(folder, winner).exact
    assert asked(folder, winner, parameters=["block_m"]) is None
    path.write_text("\n".join([header.replace('"1.0"', '"2.0"'), *lines]))
    assert asked(folder, winner) is None
    assert chosen(folder, "nothing", [], "NVIDIA H200", [1]) is None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_gives_a_choice_or_none(exported, data):
    folder, (winner, *_) = exported
    path = folder / file_of(tuning_key(winner))
    whole = bytearray(path.read_bytes())
    kept = bytes(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    found = asked(folder, winner)
    path.write_bytes(kept)
    assert found is None or set(found.config) == set(winner.schedule.knobs)


def test_what_the_library_has_no_words_for_is_refused(tmp_path):
    pytest.importorskip("tvm")
    cpu = tuned.entry_on(tuned.CPU, "matmul", "tvm.metaschedule", axes={"M": 32, "N": 32, "K": 32})
    wide = tuned.entry_on(tuned.H200, "attention", "triton.attention_pointers")
    for entry, why in ((cpu, "CUDA kernels only"), (wide, "of which a problem has three")):
        with pytest.raises(NothingValid, match=why):
            export([entry], "wisdom", tmp_path / "out")
