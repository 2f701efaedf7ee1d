"""The journal survives kills, refuses what it is not, and gives back what was written."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.journal import FILE, Journal, load_runs, read_journal
from autotune.measurement import Measurement, Policy, Status
from autotune.records import SCHEMA, RunRecord, TaskData, TrialRecord
from search_spaces.errors import BadLog, CannotWrite
from search_spaces.operator import Workload
from search_spaces.space import Schedule

WORKLOAD = Workload("matmul", (("M", 64), ("N", 64), ("K", 64)), "float32")


def run_record(run="r1", key="k1"):
    return RunRecord(
        schema=SCHEMA,
        run=run,
        started="2026-01-01T00:00:00+00:00",
        task=TaskData("matmul", WORKLOAD, "llvm", (), key, "f"),
        device=DeviceInfo("llvm", "cpu", "x86_64", 2, 1),
        foreign=False,
        environment=Environment({"numpy": "2"}, "3.11", "Linux"),
        policy=Policy(),
        strategy="random",
        seed=0,
        trials=4,
        minutes=None,
        floor_seconds=1e-6,
        operations=1.0,
        bytes=1.0,
    )


def schedule(tile):
    return Schedule((("sketch", "a.b"), ("tile", tile), ("factors", (2, tile)), ("pack", True), ("order", "ij")))


def trial(number, m, run="r1"):
    return TrialRecord.of(run, number, 0.5 * number, m)


def written(folder, *records):
    with Journal(folder) as journal:
        for record in records:
            journal.append(record)
    return folder / FILE


OK = Measurement(schedule(4), Status.OK, (2e-3, 1e-3, 3e-3))
BAD = Measurement(schedule(8), Status.BUILD_ERROR, detail="too [large] for 'it'")


def test_what_was_written_comes_back(tmp_path):
    written(tmp_path, run_record(), trial(0, OK), trial(1, BAD))
    (log,) = load_runs(tmp_path)
    assert list(log.trials.values()) == [OK, BAD]
    assert log.best == OK
    assert log.runs == [run_record()]


def test_tasks_of_one_journal_are_kept_apart(tmp_path):
    written(tmp_path, run_record(), trial(0, OK), run_record("r2", "k2"), trial(0, BAD, "r2"), run_record("r3"))
    first, second = load_runs(tmp_path)
    assert [list(first.trials), list(second.trials)] == [[OK.schedule], [BAD.schedule]]
    assert [r.run for r in first.runs] == ["r1", "r3"]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.integers(min_value=1))
def test_a_journal_cut_anywhere_in_its_last_line_opens_and_goes_on(tmp_path, cut):
    path = tmp_path / FILE
    path.unlink(missing_ok=True)
    written(tmp_path, run_record(), trial(0, OK), trial(1, BAD))
    data = path.read_bytes()
    last = len(data) - data[:-1].rfind(b"\n") - 1
    path.write_bytes(data[: len(data) - 1 - cut % last])
    assert list(load_runs(path)[0].trials) == [OK.schedule]
    written(tmp_path, trial(1, BAD))
    assert list(load_runs(path)[0].trials) == [OK.schedule, BAD.schedule]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no whole record"),
        (b"hello\n", "is not a journal"),
        (b"[1,2]\n", "is not a journal"),
        (
            b'{"kind":"trial","run":"x","trial":0,"at":0,"schedule":{"sketch":"a"},"status":"timeout"}\n',
            "does not start with a run",
        ),
        (b'{"kind":"run","schema":"tunelog/9"}\n', "has schema tunelog/9"),
        (b'{"kind":"run"\xff}\n', "is not a journal"),
    ],
)
def test_what_is_no_journal_is_refused_in_one_line(tmp_path, content, says):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(BadLog, match=says) as error:
        list(read_journal(tmp_path))
    assert "\n" not in str(error.value)
    assert error.value.hint


def test_a_newer_schema_is_named_even_where_its_fields_still_fit(tmp_path):
    path = written(tmp_path, run_record())
    path.write_bytes(path.read_bytes().replace(SCHEMA.encode(), b"tunelog/2"))
    with pytest.raises(BadLog, match=r"tunelog/2.*newer kernel-autotune"):
        load_runs(path)


def test_damage_in_the_middle_names_its_line(tmp_path):
    path = written(tmp_path, run_record(), trial(0, OK), trial(1, BAD))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:20] + b"\n" + lines[2])
    with pytest.raises(BadLog, match="damaged at line 2"):
        load_runs(path)


def test_a_missing_journal_names_the_remedy(tmp_path):
    with pytest.raises(BadLog, match=r"no journal at .*name a run's folder"):
        load_runs(tmp_path / "nothing")


def test_a_second_writer_is_refused(tmp_path):
    with Journal(tmp_path), pytest.raises(CannotWrite, match="another run writes to"):
        Journal(tmp_path)
    Journal(tmp_path).close()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite, match="choose another --out"):
        Journal(tmp_path / "file" / "run")


def test_a_record_with_the_wrong_type_is_refused(tmp_path):
    path = written(tmp_path, run_record(), trial(0, OK))
    lines = path.read_text().splitlines()
    broken = json.loads(lines[1]) | {"samples": "fast"}
    path.write_text(f"{lines[0]}\n{json.dumps(broken)}\n")
    with pytest.raises(BadLog, match="damaged at line 2"):
        load_runs(path)


@pytest.mark.parametrize(("status", "samples"), [(Status.OK, ()), (Status.TIMEOUT, (1.0,)), (Status.OK, (0.0,))])
def test_samples_are_there_if_and_only_if_the_status_is_ok(status, samples):
    with pytest.raises(ValueError, match="samples"):
        Measurement(schedule(1), status, samples)
