"""Cost, energy and break-even: every number can be recomputed by hand."""

import math
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from autotune.commands.show import command
from autotune.cost import break_even, cost_line, cost_of, energy, span
from autotune.devices.telemetry import Conditions
from autotune.journal import Journal, RunLog, load_runs
from autotune.measurement import Measurement, Phases, Status
from autotune.records import RaceRecord, Ratio, TrialRecord
from autotune.trial_index import TrialIndex
from search_spaces.space import Schedule
from tests.support.journals import run_record, write_journal

FAST, SLOW = ({"sketch": "made", "k": k} for k in (1, 2))


def trial(data, watts=None, check=1.0, measure=1.0):
    conditions = None if watts is None else Conditions(1, 1, watts, 40)
    return Measurement(
        Schedule.from_json(data), Status.OK, (1.0,), phases=Phases(5.0, check, measure), conditions=conditions
    )


def race(over_default, winner=FAST, watts=()):
    return RaceRecord(
        "r1",
        winner,
        SLOW,
        (FAST, SLOW),
        ((1.0, 1.0), (3.0, 3.0)),
        {"library": (2.0,)},
        over_default,
        None,
        0,
        conditions=tuple(Conditions(1, 1, w, 40) for w in watts),
    )


def log_of(*trials, race=None, seconds=1.0):
    return RunLog([run_record(2)], TrialIndex(trials), [race] if race else [], last_trial={"r1": seconds})


def test_time_and_break_even_against_the_default():
    cost = cost_of(log_of(trial(FAST), trial(SLOW), race=race(Ratio(3.0, 2.0, 5.0)), seconds=20.0))
    assert (cost.build_seconds, cost.race_seconds) == (10.0, 10.0)
    assert cost.device_seconds == 4.0 + 10.0
    assert cost.kept_seconds == 30.0
    assert (cost.saved_seconds, cost.saved_interval) == (2.0, (1.0, 4.0))
    assert cost.break_even_calls == 15.0
    assert cost.break_even_interval == (7.5, 30.0)
    assert break_even(cost) == "paid back after 15 calls (8 to 30)"


def test_energy_is_power_times_time_on_the_device():
    trials = trial(FAST, watts=100.0), trial(SLOW, watts=300.0, measure=2.0)
    assert cost_of(log_of(*trials, seconds=20.0)).joules == 100.0 * 2.0 + 300.0 * 3.0
    raced = cost_of(log_of(*trials, race=race(Ratio(3.0, 2.0, 5.0), watts=(400.0, 600.0)), seconds=20.0))
    assert raced.joules == 1100.0 + 500.0 * 10.0


def test_a_trial_that_told_no_power_counts_as_the_median_and_none_gives_no_energy():
    assert cost_of(log_of(trial(FAST, watts=100.0), trial(SLOW), seconds=1.0)).joules == 400.0
    cost = cost_of(log_of(trial(FAST), trial(SLOW), seconds=1.0))
    assert cost.joules is None
    assert "J" not in cost_line(cost)


@pytest.mark.parametrize("ratio", [None, Ratio(1.0, 1.0, 1.0), Ratio(1.5, 0.9, 2.0)])
def test_what_is_not_shown_to_be_faster_does_not_pay_back(ratio):
    cost = cost_of(log_of(trial(FAST), race=race(ratio), seconds=20.0))
    assert cost.break_even_calls is None
    assert cost.break_even_interval is None
    assert "no break-even" in cost_line(cost)


def test_a_race_of_an_earlier_run_says_nothing_of_the_later_one():
    log = log_of(trial(FAST), race=race(Ratio(3.0, 2.0, 5.0)))
    log.runs.append(run_record(2, run="r2"))
    assert cost_of(log).saved_seconds is None


def test_money_is_the_time_that_the_machine_was_kept():
    cost = cost_of(log_of(trial(FAST), seconds=1800.0))
    assert cost.money(4.0) == 2.0
    assert "2.00 at 4 an hour" in cost_line(cost, 4.0)
    assert "an hour" not in cost_line(cost)


def test_the_time_of_a_continued_run_is_that_of_all_its_runs(tmp_path):
    with Journal(tmp_path) as journal:
        for run, at in (("r1", 7.0), ("r2", 4.0)):
            journal.append(run_record(2, run=run))
            journal.append(TrialRecord.of(run, 0, at, trial(FAST)))
            journal.append(TrialRecord.of(run, 0, at - 1.0, trial(SLOW)))
        journal.append(run_record(1, run="r3", task=replace(run_record(1).task, key="other")))
    assert [cost_of(log).search_seconds for log in load_runs(tmp_path)] == [11.0, 0.0]


def test_show_ends_with_what_it_cost(tmp_path):
    write_journal(tmp_path, 60)
    (log,) = load_runs(tmp_path)
    shown = CliRunner().invoke(command, [str(tmp_path), "--price-per-hour", "3.5"], catch_exceptions=False).stdout
    assert f"cost {cost_line(cost_of(log), 3.5)}" in shown
    assert " J, " in shown


@given(st.floats(1e-3, 1e9))
def test_spans_and_energies_are_short_and_say_their_unit(value):
    for shown, units in ((span(value), ("h", "min", "s")), (energy(value), ("kWh", "kJ", "J"))):
        number, unit = shown.split()
        assert unit in units
        assert math.isfinite(float(number))
        assert len(number) <= 9
