"""A journal as a DataFrame: every fact in its column, of its type, whatever the journal lacks."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import autotune
from autotune.journal import FILE, Journal, load_runs, read_journal
from autotune.measurement import Status
from autotune.records import TrialRecord
from autotune.trial_table import frame
from search_spaces.errors import BadLog
from tests.support.journals import measurements, run_record, write_journal
from tests.support.recorded import tune_recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    write_journal(folder, 200)
    return folder


def test_a_row_a_trial_with_what_the_journal_says(folder):
    table = autotune.frame(folder)
    (log,) = load_runs(folder)
    assert len(table) == len(log.trials) == 200
    for row, trial in zip(table.to_dict("records"), log.trials.values(), strict=True):
        assert row["status"] == trial.status
        assert row["seconds"] == trial.seconds or (np.isnan(row["seconds"]) and trial.status is not Status.OK)
        assert row["samples"] == len(trial.samples)
        assert row["build_seconds"] == trial.phases.build
        assert row["knob.block_m"] == trial.schedule["block_m"]
        assert row["axis.K"] == 4096


def test_columns_are_typed(folder):
    kinds = frame(folder).dtypes
    assert {str(kinds[c]) for c in ("trial", "knob.block_m", "knob.group", "registers", "celsius")} == {"Int64"}
    assert {str(kinds[c]) for c in ("knob.even", "deterministic", "winner")} == {"boolean"}
    assert {str(kinds[c]) for c in ("seconds", "best_seconds", "roofline_share", "watts", "at")} == {"float64"}
    assert {str(kinds[c]) for c in ("status", "sketch", "knob.order", "knob.tile", "chooser")} == {"category"}


def test_a_knob_that_a_sketch_lacks_is_missing(folder):
    table = frame(folder)
    plain = table["sketch"] == "made.plain"
    assert 0 < plain.sum() < len(table)
    assert table.loc[plain, ["knob.order", "knob.even", "knob.tile"]].isna().all().all()
    assert table.loc[~plain, "knob.group"].isna().all()
    assert table.loc[~plain, "knob.tile"].astype(str).str.fullmatch(r"\d+x2").all()


def test_the_best_so_far_never_rises_and_ends_at_the_best(folder):
    table = frame(folder)
    known = table["best_seconds"].dropna()
    assert (known.diff().dropna() <= 0).all()
    assert known.iloc[-1] == table["seconds"].min() == load_runs(folder)[0].best.seconds


def test_the_race_marks_default_winner_and_who_raced(folder):
    table = frame(folder)
    race = load_runs(folder)[0].races[-1]
    assert table["winner"].sum() == table["default"].sum() == 1
    winner = table[table["winner"]].iloc[0]
    assert winner["race_seconds"] == np.median(race.samples[race.schedules.index(race.winner)])
    assert table["race_seconds"].notna().sum() == len(race.schedules)


def test_without_a_race_nobody_has_a_role(tmp_path):
    write_journal(tmp_path, 20, raced=False, choosers=())
    table = frame(tmp_path / FILE)
    assert table[["winner", "default", "race_seconds", "chooser"]].isna().all().all()


def test_what_the_model_expected_is_there_where_it_did(folder):
    told = frame(folder)["predicted_seconds"].notna()
    assert told.tolist() == [number > 40 for number in range(200)]


def test_what_was_recorded_again_has_one_row_with_the_last_word_and_its_first_time(tmp_path):
    (trial,) = measurements(1)
    refuted = replace(trial, status=Status.WRONG_RESULT, samples=(), detail="turned wrong")
    with Journal(tmp_path) as journal:
        journal.append(run_record(1))
        journal.append(TrialRecord.of("r1", 0, 1.0, trial, "prior"))
        journal.append(TrialRecord.of("r1", 0, 9.0, refuted))
    (row,) = frame(tmp_path).to_dict("records")
    assert (row["status"], row["detail"], row["at"], row["chooser"]) == ("wrong_result", "turned wrong", 1.0, "prior")
    assert pd.isna(row["best_seconds"])


def test_a_run_without_trials_has_the_columns_all_the_same(tmp_path):
    with Journal(tmp_path) as journal:
        journal.append(run_record(1))
    table = frame(tmp_path)
    assert len(table) == 0
    assert {"trial", "status", "seconds", "axis.M"} <= set(table.columns)


def test_what_is_no_journal_is_said(tmp_path):
    with pytest.raises(BadLog, match="no journal at"):
        frame(tmp_path)


def test_a_search_writes_down_who_chose_each_trial(tmp_path):
    tune_recorded(tmp_path, 24, "hybrid")
    told = [r.chooser for r in read_journal(tmp_path) if isinstance(r, TrialRecord)]
    assert told[0] == "", "the default is nobody's choice"
    assert all(told[1:])
    assert set(frame(tmp_path)["chooser"].dropna()) == set(told[1:])


def test_a_strategy_that_does_not_tell_leaves_it_open(tmp_path):
    tune_recorded(tmp_path, 4, "random")
    assert frame(tmp_path)["chooser"].isna().all()


def test_statuses_are_all_there_to_group_by(tmp_path):
    write_journal(tmp_path, 20)
    assert list(frame(tmp_path)["status"].cat.categories) == [str(s) for s in Status]
