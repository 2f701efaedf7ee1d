"""Verification: a log's winners are built, checked and raced against the untuned default again, here and now."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import msgspec

from autotune.device_here import device_here
from autotune.devices.choice import FIRST
from autotune.devices.cpu import usable_cores
from autotune.environment import read_environment
from autotune.executors.base import Measuring, Site
from autotune.executors.local import Local
from autotune.identity import Identity, Judgement, Reading, judge
from autotune.measurement import Measurement, Policy, Status
from autotune.measurer import Measurer
from autotune.race import NoContestant, RaceResult, ratio, run_race
from autotune.records import Ratio, TaskData
from autotune.runner import Died
from autotune.sanitizer import Sanitizer, find_sanitizer
from autotune.scratch import scratch_folder
from autotune.task_options import TaskOptions, make_task, on_device, require_device
from autotune.toolchain import tool_versions
from autotune.trust import require_trusted
from autotune.tune import usable_task
from autotune.tuned_log import Entry
from autotune.worker import Measured
from search_spaces.errors import AutotuneError, ExitCode, OtherIdentity
from search_spaces.space import Schedule
from search_spaces.task import OPERATORS, Task

_POLL_SECONDS = 0.25


class State(StrEnum):
    """What became of a winner. Only HOLDS is good."""

    HOLDS = "holds"
    SLOWER = "slower"
    INVALID = "no longer valid"
    OTHER_DEVICE = "other device"
    DIFFERS = "differs"


@dataclass(frozen=True)
class Rules:
    """What the reader asks of a log.

    Attributes:
        policy: What is made of records of another identity.
        top: Schedules verified of each entry: its winner and the runners-up.
        tolerance: Share by which the winner may be slower than recorded, on the same device.
        sanitize: Tools of compute-sanitizer that schedules for CUDA are run under; () for none.
        operators: Files and modules of operators that may be imported where an entry names them.
    """

    policy: Reading = Reading.COMPATIBLE
    top: int = 3
    tolerance: float = 0.1
    sanitize: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Verified:
    """What verifying one entry gave.

    Attributes:
        entry: The entry.
        state: What became of its winner.
        why: The reason in words, "" where there is nothing to say.
        judgement: How its identity compares; None where its task cannot be made here.
        seconds: The winner's median here; None where it was not timed.
        over_default: How many times faster than the untuned default here; None where it is the default, or that failed.
        fastest: The fastest of the schedules verified; None where none was timed.
        fastest_over_default: The same of that one.
        held: The winner as it was measured here; None where it does not hold.
    """

    entry: Entry
    state: State
    why: str
    judgement: Judgement | None = None
    seconds: float | None = None
    over_default: Ratio | None = None
    fastest: Schedule | None = None
    fastest_over_default: Ratio | None = None
    held: Entry | None = None


@dataclass(frozen=True)
class Case:
    """An entry before it is measured.

    Attributes:
        entry: The entry.
        task: Its task here; None where that cannot be made.
        judgement: How its identity compares.
        failed: The end of it, where it is not to be measured.
        here: The identity that measuring it here has; None where there is no task.
    """

    entry: Entry
    task: Task | None
    judgement: Judgement | None
    failed: Verified | None = None
    here: Identity | None = None

    def ended(self, state: State, why: str) -> Verified:
        """This case without a time."""
        return Verified(self.entry, state, why, self.judgement)


def prepare(entries: Sequence[Entry], rules: Rules) -> list[Case]:
    """Compares every entry with this machine before anything is measured.

    Raises:
        OtherIdentity: The policy is to refuse and an entry differs.
        NoDevice: There is no device for an entry.
        MissingDependency: A package that an entry needs is not installed.
    """
    with scratch_folder() as scratch:
        return [_prepared(entry, rules, scratch) for entry in entries]


def _prepared(entry: Entry, rules: Rules, scratch: Path) -> Case:
    try:
        require_trusted(OPERATORS, "operator", entry.task.reference, rules.operators, "--op")
        task, _ = usable_task(make_task(TaskOptions.of(entry.task), measure_roof=True))
        require_device(task, foreign=True)
        device = device_here(task.target.kind, scratch)
        task = on_device(task, device)
        data = TaskData.of(task)
    except AutotuneError as error:
        if error.exit_code in (ExitCode.NO_DEVICE, ExitCode.MISSING_DEPENDENCY):
            raise
        if rules.policy is Reading.REFUSE:
            raise OtherIdentity(
                f"{entry.task.workload} cannot be made here: {error.message}", "tune again here"
            ) from error
        return Case(entry, None, None, Verified(entry, State.INVALID, str(error)))
    here = Identity.of(data, device, read_environment(tool_versions(task)), entry.policy)
    case = Case(entry, task, judge(entry, here, rules.policy), here=here)
    why_not = task.space.why_not(Schedule.from_json(entry.schedule))
    assert case.judgement is not None
    if not case.judgement.allowed:
        state = State.OTHER_DEVICE if case.judgement.other_device else State.DIFFERS
        named = [d for d in case.judgement.differences if d.binding] or case.judgement.differences
        return replace(case, failed=case.ended(state, "; ".join(map(str, named))))
    if why_not is not None:
        return replace(case, failed=case.ended(State.INVALID, f"not in today's space: {why_not}"))
    return case


def verify(case: Case, rules: Rules, notice: Callable[[str], object] = lambda _: None) -> Verified:
    """Builds, checks and races the case's winner, its runners-up and the default.

    Args:
        case: As `prepare` made it.
        rules: What is asked of it.
        notice: Told in a line what could not be checked.

    Raises:
        MissingDependency: It is to be sanitized, and compute-sanitizer is not installed.
    """
    if case.failed is not None:
        return case.failed
    assert case.task is not None
    task, entry = case.task, case.entry
    winner = Schedule.from_json(entry.schedule)
    others = [Schedule.from_json(r.schedule) for r in entry.runners_up[: rules.top - 1]]
    legal = [s for s in others if task.space.why_not(s) is None]
    jobs = min(usable_cores(), len(legal) + 2)
    with scratch_folder() as scratch, closing(_measurer(task, entry.policy, scratch, jobs)) as measurer:
        measurer.device()
        trials = _measured(measurer, list(dict.fromkeys([task.default, winner, *legal])))
        if rules.sanitize and task.target.kind == "cuda":
            with closing(Sanitizer(find_sanitizer(), rules.sanitize, scratch)) as sanitizer:
                verified = [s for s, trial in trials.items() if trial.status is Status.OK]
                _refute(trials, measurer.finals.sanitize(sanitizer, verified, notice))
        if trials[winner].status is not Status.OK:
            return case.ended(State.INVALID, _failure(trials[winner]))
        try:
            race = run_race(measurer.finals.race, list(trials.values()), task.default, entry.seed)
        except (Died, TimeoutError, NoContestant) as error:
            return case.ended(State.INVALID, f"the race did not end: {error or 'time-out'}")
    return _decided(case, rules, trials, race)


def _measurer(task: Task, policy: Policy, folder: Path, jobs: int) -> Measurer:
    return Measurer(Local(Site(devices=FIRST), folder), Measuring(task, policy), jobs)


def _measured(measurer: Measurer, schedules: Sequence[Schedule]) -> dict[Schedule, Measurement]:
    """Every schedule built, timed, and checked as closely as a run checks its finalists."""
    done: dict[Schedule, Measurement] = {}
    measurer.submit(schedules)
    while measurer.in_flight:
        done |= {m.schedule: m for m in measurer.completed(_POLL_SECONDS)}
    _refute(done, measurer.finals.verify([s for s in schedules if done[s].status is Status.OK]))
    return {s: done[s] for s in schedules}


def _refute(trials: dict[Schedule, Measurement], failed: Mapping[Schedule, Measured]) -> None:
    for schedule, answer in failed.items():
        trials[schedule] = replace(trials[schedule], status=answer.status, samples=(), detail=answer.detail)


def _failure(trial: Measurement) -> str:
    return f"{trial.status.replace('_', ' ')}: {trial.detail}"


def _decided(case: Case, rules: Rules, trials: dict[Schedule, Measurement], race: RaceResult) -> Verified:
    """The state that the race leaves the winner in."""
    entry = case.entry
    assert case.task is not None
    assert case.judgement is not None
    default, winner = case.task.default, Schedule.from_json(entry.schedule)
    # Of equal binaries one stands for all in a race.
    stands = {trials[s].binary: s for s in race.samples}
    standing = winner if winner in race.samples else stands.get(trials[winner].binary)
    if standing is None:
        return case.ended(State.INVALID, f"did not survive the race: {race.dropped.get(winner, 'not raced')}")
    times = race.samples[standing]
    fastest = min(race.samples, key=lambda s: statistics.median(race.samples[s]))
    seconds = statistics.median(times)
    is_default, ran = winner == default, default in race.samples
    over = ratio(race.samples[default], times) if ran and not is_default else None
    best_over = ratio(race.samples[default], race.samples[fastest]) if ran else None
    state, why = State.HOLDS, ""
    if over is not None and over.low <= 1.0:
        state, why = State.SLOWER, "not shown to be faster than the untuned default"
    elif not case.judgement.other_device and seconds > entry.seconds * (1.0 + rules.tolerance):
        state, why = State.SLOWER, f"takes {seconds / entry.seconds - 1.0:.1%} longer than recorded"
    elif over is None:
        why = "it is the untuned default" if is_default else "the untuned default itself failed"
    held = _held(case, trials[winner], times, over) if state is State.HOLDS else None
    return Verified(entry, state, why, case.judgement, seconds, over, fastest, best_over, held)


def _held(case: Case, trial: Measurement, times: Sequence[float], over: Ratio | None) -> Entry:
    """The entry with what was measured here in the place of what was recorded; where it is from stays said."""
    assert case.task is not None
    assert case.here is not None
    seconds = statistics.median(times)
    return msgspec.structs.replace(
        case.entry,
        task=TaskData.of(case.task),
        device=case.here.device,
        foreign=not case.task.target.runs_on(case.here.device.arch),
        environment=read_environment(tool_versions(case.task)),
        seconds=seconds,
        samples=tuple(times),
        raced=True,
        race_failed="",
        over_default=over,
        over_library=None,
        library="",
        roofline=case.task.floor_seconds / seconds,
        resources=trial.resources,
        binary=trial.binary,
        identity=case.here.fingerprint,
        runners_up=(),
        held=True,
    )
