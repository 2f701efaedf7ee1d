"""The trials of a journal, read again when asked for, are what a dictionary of them would be."""

import shutil

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.journal import Journal, load_runs
from autotune.measurement import Measurement, Phases, Status
from autotune.records import TrialRecord
from autotune.trial_index import TrialIndex
from search_spaces.errors import BadLog
from search_spaces.space import Schedule
from tests.support.journals import run_record, write_journal

SECONDS = st.floats(1e-6, 1.0)
MEASUREMENTS = st.builds(
    lambda tile, pack, seconds, build: Measurement(
        Schedule((("sketch", "a.b"), ("tile", tile), ("factors", (2, tile)), ("pack", pack))),
        Status.OK if seconds else Status.TIMEOUT,
        seconds,
        phases=Phases(build, 0.5, 0.25),
    ),
    st.integers(0, 6),
    st.booleans(),
    st.one_of(st.just(()), st.tuples(SECONDS), st.tuples(SECONDS, SECONDS, SECONDS)),
    SECONDS,
)
IN_A_FOLDER = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def journal_of(folder, trials, packed=False):
    shutil.rmtree(folder, ignore_errors=True)
    with Journal(folder) as journal:
        journal.append(run_record(len(trials)))
        for number, trial in enumerate(trials):
            journal.append(TrialRecord.of("r1", number, float(number), trial))
        if packed:
            journal.compact()
    return load_runs(folder)[0].trials


def check(index, expected):
    assert list(index.items()) == list(expected.items())
    assert list(index.values()) == list(expected.values())
    assert list(index) == list(expected)
    assert len(index) == len(expected)
    assert all(s in index and index[s] == m for s, m in expected.items())
    assert index.seconds.tolist() == [m.seconds for m in expected.values()]
    assert index.build_seconds.tolist() == [m.phases.build for m in expected.values()]
    statuses = [m.status for m in expected.values()]
    assert index.counts() == {s: statuses.count(s) for s in dict.fromkeys(statuses)}
    ran = sorted((m for m in expected.values() if m.status is Status.OK), key=lambda m: m.seconds)
    for count in (1, 3, 50):
        assert index.fastest(count) == ran[:count]


@IN_A_FOLDER
@given(st.lists(MEASUREMENTS, max_size=30), st.lists(MEASUREMENTS, max_size=10), st.booleans())
def test_it_is_what_a_dictionary_would_be(tmp_path, recorded, put, packed):
    index, expected = journal_of(tmp_path / "run", recorded, packed), {m.schedule: m for m in recorded}
    check(index, expected)
    for trial in put:
        index[trial.schedule] = trial
        expected[trial.schedule] = trial
    check(index, expected)
    check(TrialIndex(expected.values()), expected)


def test_schedules_of_one_hash_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.trial_index.hash", lambda _: 7, raising=False)
    made = [Measurement(Schedule((("sketch", "a"), ("k", k))), Status.OK, (float(k + 1),)) for k in (0, 1, 2, 1, 0)]
    check(journal_of(tmp_path / "run", made), {m.schedule: m for m in made})


def test_what_is_not_there_is_not_found(tmp_path):
    index = journal_of(tmp_path / "run", [])
    absent = Schedule((("sketch", "a"),))
    assert absent not in index
    assert index.fastest(3) == []
    assert index.counts() == {}
    with pytest.raises(KeyError):
        index[absent]
    with pytest.raises(TypeError, match="stays"):
        del index[absent]


def test_a_trial_costs_some_bytes_however_long_its_record_is(tmp_path):
    write_journal(tmp_path, 600)
    (log,) = load_runs(tmp_path)
    held = sum(column.itemsize for column in log.trials._columns)
    assert held <= 64
    assert not log.trials._held


def test_a_journal_that_is_gone_is_said_in_one_line(tmp_path):
    trials = journal_of(tmp_path / "run", [Measurement(Schedule((("sketch", "a"),)), Status.OK, (1.0,))])
    shutil.rmtree(tmp_path / "run")
    with pytest.raises(BadLog, match="is gone"):
        list(trials.values())


def test_power_is_missing_where_none_was_told(tmp_path):
    write_journal(tmp_path, 60)
    (log,) = load_runs(tmp_path)
    told = [np.nan if m.conditions is None else m.conditions.watts for m in log.trials.values()]
    np.testing.assert_array_equal(log.trials.watts, told)
    assert np.isnan(told).any()
    assert not np.isnan(told).all()
