"""The native format: nothing is lost, equal recordings give equal bytes, and damage gives one line."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.measurement import Status
from autotune.recordings import bounded
from autotune.recordings.native import SUFFIX, read_native, write_recording
from search_spaces.errors import BadLog, CannotWrite


def assert_same(one, other):
    assert one.space.schedules == other.space.schedules
    assert one.space.sketches == other.space.sketches or [s.knobs for s in one.space.sketches] == [
        s.knobs for s in other.space.sketches
    ]
    for name in ("name", "kernel", "device", "status", "context", "provenance", "repeats", "workload", "target"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.environment == other.environment
    for name in ("seconds", "deviation", "cost"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6)
    assert list(one.phases) == list(other.phases)
    assert [list(s) for s in one.samples] == [list(s) for s in other.samples]


def test_what_is_written_is_read(recording, tmp_path):
    path = tmp_path / f"{recording.name}{SUFFIX}"
    write_recording(recording, path)
    assert_same(read_native(path), recording)


def test_without_raw_repeats_mean_and_deviation_are_kept(recording, tmp_path):
    poor = replace(recording, samples=())
    write_recording(poor, tmp_path / "a")
    read = read_native(tmp_path / "a")
    assert_same(read, poor)
    assert not read.samples


def test_a_cost_without_phases_stays_one(recording, tmp_path):
    write_recording(replace(recording, phases={}), tmp_path / "a")
    read = read_native(tmp_path / "a")
    assert not read.phases
    np.testing.assert_allclose(read.cost, recording.cost, rtol=1e-6)


def test_equal_recordings_give_equal_bytes_however_often_they_are_copied(recording, tmp_path):
    write_recording(recording, tmp_path / "one")
    write_recording(read_native(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_place_that_cannot_be_written_is_named(recording, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite, match="cannot be written"):
        write_recording(recording, tmp_path / "file" / "a")


def changed(recording, path, change):
    """The recording written with its header and rows changed."""
    write_recording(recording, path)
    head, *rows = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    change(head, rows)
    path.write_bytes(gzip.compress(b"\n".join(json.dumps(line).encode() for line in (head, *rows))))


HARMED = {
    "newer schema": (lambda h, r: h.update(schema="recording/9"), "this version reads recording/1"),
    "missing rows": (lambda h, r: r.pop(), "15 of 16 schedules"),
    "value that is not there": (lambda h, r: r[0][1].__setitem__(0, 99), "picks no values"),
    "too few knobs": (lambda h, r: r[0][1].pop(), "picks no values"),
    "sketch that is not there": (lambda h, r: r[0].__setitem__(0, 7), "no sketch number 7"),
    "unknown status": (lambda h, r: r[0].__setitem__(2, "fine"), "Invalid enum value"),
    "ok without a time": (lambda h, r: r[0].__setitem__(4, []), "if and only if it is ok"),
    "failure with a time": (lambda h, r: r[2].__setitem__(4, [1.0]), "if and only if it is ok"),
    "time of nothing": (lambda h, r: r[0].__setitem__(4, [0.0]), "positive"),
    "negative time": (lambda h, r: r[0].__setitem__(4, [-1.0, 3.0]), ">= 0.0"),
    "missing phase": (lambda h, r: r[0][3].pop(), "lacks a part of its cost"),
    "the same schedule twice": (lambda h, r: r.__setitem__(1, r[0]), "each of them once"),
    "unknown family": (lambda h, r: h["sketches"][0]["knobs"][0].update(family="magic"), "Invalid enum value"),
    "a knob as an object": (lambda h, r: h["sketches"][0]["knobs"][0].update(values=[{"a": 1}]), "Expected"),
    "nothing": (lambda h, r: (h.update(rows=0), r.clear()), "needs schedules"),
}


@pytest.mark.parametrize("name", HARMED)
def test_what_is_wrong_is_said_in_one_line(recording, tmp_path, name):
    change, said = HARMED[name]
    changed(recording, tmp_path / "a", change)
    with pytest.raises(BadLog, match=said) as caught:
        read_native(tmp_path / "a")
    assert "\n" not in str(caught.value)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(bounded, "MOST_BYTES", 1 << 20)
    (tmp_path / "bomb").write_bytes(gzip.compress(b"0" * (1 << 21)))
    with pytest.raises(BadLog, match="more than 1 MiB"):
        read_native(tmp_path / "bomb")


def test_deep_nesting_is_refused(tmp_path):
    (tmp_path / "deep").write_bytes(b'{"context":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n")
    with pytest.raises(BadLog):
        read_native(tmp_path / "deep")


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_is_no_file_is_named(tmp_path, name):
    with pytest.raises(BadLog, match="is no recording"):
        read_native(tmp_path / name)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_damage_gives_a_recording_or_one_line(recording, tmp_path, told, data):
    path = tmp_path / "a"
    write_recording(recording, path)
    packed = data.draw(st.booleans())
    content = bytearray(path.read_bytes() if packed else gzip.decompress(path.read_bytes()))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]))
    read = told(read_native, path)
    if read is not None:
        assert len(read.status) == len(read.space.schedules)
        assert all((t < np.inf) == (s is Status.OK) for t, s in zip(read.seconds, read.status, strict=True))
