"""The tuned log as a file: its published schema, and what becomes of logs from strangers."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune import tuned_log
from autotune.recall import recall
from autotune.schema import FILE, schema_text, tuned_log_schema
from autotune.tuned_log import entries_of, read_tuned_log, write_entries
from search_spaces.errors import AutotuneError, BadLog
from search_spaces.registry import load_file

tuned = load_file(Path(__file__).parents[1] / "support" / "tuned.py")
SCHEMA = jsonschema.Draft202012Validator(json.loads(FILE.read_bytes()))


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "log.json"
    write_entries(
        path, [tuned.entry_on(tuned.H200, "matmul", "triton.matmul_tiled", axes={"M": 512, "N": 256, "K": 128})]
    )
    return path


def told_or_read(path):
    """A line where it is refused, else what it says, made again."""
    try:
        for entry in read_tuned_log(path).entries:
            recall(entry)
    except AutotuneError as error:
        return str(error)
    return ""


def changed(log, tmp_path, *steps, value):
    """The log with one value changed."""
    data = json.loads(log.read_bytes())
    place = data["entries"][0]
    for step in steps[:-1]:
        place = place[step]
    place[steps[-1]] = value
    (tmp_path / "changed.json").write_text(json.dumps(data))
    return tmp_path / "changed.json"


def test_the_published_schema_is_that_of_the_reader():
    assert FILE.read_bytes() == schema_text(), f"run: python -m autotune.schema > autotune/{FILE.name}"
    SCHEMA.check_schema(tuned_log_schema())


def test_it_is_shipped():
    code = (
        "from importlib.resources import files; print(files('autotune').joinpath('tuned-log-1.schema.json').is_file())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_a_log_is_valid_under_it(log):
    SCHEMA.validate(json.loads(log.read_bytes()))


@pytest.mark.parametrize("field", ["task", "device", "schedule", "samples", "environment"])
def test_a_log_without_what_counts_is_not(log, field):
    data = json.loads(log.read_bytes())
    del data["entries"][0][field]
    assert not SCHEMA.is_valid(data)


def test_a_field_of_tomorrow_is_passed_over(log, tmp_path):
    path = changed(log, tmp_path, "of_tomorrow", value=[1])
    assert read_tuned_log(path) == read_tuned_log(log)
    SCHEMA.validate(json.loads(path.read_bytes()))


def test_a_version_of_tomorrow_is_told_whatever_it_holds(tmp_path):
    (tmp_path / "log.json").write_text('{"schema": "tuned-log/2", "winners": {}}')
    with pytest.raises(BadLog, match=r"schema 'tuned-log/2', this version reads tuned-log/1; install a newer"):
        read_tuned_log(tmp_path / "log.json")


@pytest.mark.parametrize(
    ("steps", "value", "why"),
    [
        (("samples",), [], "no samples"),
        (("samples",), [-1.0], "a time that cannot be"),
        (("seconds",), 0.0, "a time that cannot be"),
        (("seconds",), 1e300, "a time that cannot be"),
        (("schedule",), {}, "starts with its 'sketch'"),
        (("schedule",), {"block_m": 1}, "starts with its 'sketch'"),
        (("task", "workload", "axes"), [["M", 1], ["M", 2]], "names an axis twice"),
        (("task", "workload", "axes"), [["M", 2**70], ["N", 1], ["K", 1]], "longer than"),
        (("task", "workload", "axes"), [["M", 2**40], ["N", 1], ["K", 1]], "longer than"),
        (("task", "workload", "axes"), [["Q", 1]], "unknown axis"),
        (("task", "workload", "dtype"), "float8", "unknown dtype"),
        (("task", "reference"), "/tmp/x.py:Op", "would be imported"),
        (("task", "reference"), "os", "would be imported"),
        (("task", "target"), "cuda -arch=sm_1", "unknown CUDA arch"),
        (("task", "target"), "'", "cannot be read"),
        (("task", "target"), "cuda\n-arch=sm_90", "control characters"),
        (("device", "name"), "\x1b[2J", "control characters"),
        (("device", "name"), "x" * 5000, "too long"),
        (("task", "source"), "older", "has changed"),
        (("schedule", "sketch"), "triton.nothing", "does not apply"),
        (("schedule", "block_m"), 3, "not in today's space"),
        (("schedule", "block_m"), [1] * 1000, "not in today's space"),
        (("schedule", "extra"), 1, "not in today's space"),
    ],
)
def test_a_hostile_value_is_one_line(log, tmp_path, steps, value, why):
    said = told_or_read(changed(log, tmp_path, *steps, value=value))
    assert why in said
    assert "\n" not in said


def test_a_huge_file_is_not_read(log, tmp_path, monkeypatch):
    monkeypatch.setattr(tuned_log, "MOST_BYTES", 100)
    with pytest.raises(BadLog, match="larger than"):
        read_tuned_log(log)


@pytest.mark.parametrize(
    "text", ["[" * 500_000, '{"schema":' * 100_000, '{"schema":"tuned-log/1","entries":' + "[" * 500_000]
)
def test_a_tower_of_brackets_is_told(tmp_path, text):
    (tmp_path / "log.json").write_text(text)
    assert "is no tuned log" in told_or_read(tmp_path / "log.json")


PLACES = [
    ("task", "workload", "axes"),
    ("task", "target"),
    ("task", "only"),
    ("task", "sketches"),
    ("device", "units"),
    ("schedule",),
    ("schedule", "group"),
    ("samples",),
    ("policy",),
    ("environment",),
    ("runners_up",),
]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.sampled_from(PLACES), ANYTHING)
def test_any_value_anywhere_is_read_or_one_line(log, tmp_path_factory, steps, value):
    assert "\n" not in told_or_read(changed(log, tmp_path_factory.getbasetemp(), *steps, value=value))


@settings(deadline=None)
@given(st.data())
def test_any_damage_is_read_or_one_line(log, tmp_path_factory, data):
    whole = bytearray(log.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    path = tmp_path_factory.getbasetemp() / "damaged.json"
    path.write_bytes(whole)
    assert "\n" not in told_or_read(path)


def test_a_log_that_is_not_there_is_told(tmp_path):
    with pytest.raises(BadLog, match="no tuned log at"):
        entries_of(tmp_path / "nothing.json")
