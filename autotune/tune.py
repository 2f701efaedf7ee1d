"""Tunes one task: composes measurer, strategy, model and journal, searches, races, writes the tuned log."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from autotune.budget import Budget
from autotune.builders import find_generator
from autotune.clock import now
from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue
from autotune.environment import calm_thread_pools, read_environment
from autotune.executors.base import HERE, Measuring, Site
from autotune.identity import Identity
from autotune.journal import Journal, RunLog, has_records, load_runs
from autotune.measurement import Policy
from autotune.measurer import Measurer
from autotune.pace import WAVE, asked_at_a_time, kept_in_flight
from autotune.prior.choosing import NONE, SHIPPED, chosen_prior, prior_name
from autotune.race import RaceResult
from autotune.records import SCHEMA, GivenUpRecord, Roof, RunRecord, TaskData
from autotune.runner import Died
from autotune.sanitizer import Sanitizer, find_sanitizer
from autotune.scratch import scratch_folder
from autotune.stopping import stop_on_signals
from autotune.strategies.base import Aids, Strategy
from autotune.toolchain import tool_versions
from autotune.tuned_log import Entry, entry_of, write_tuned_log
from autotune.tuner import Learner, Search, SearchLoop, Tracker, race
from cost_models.context import context_of
from cost_models.features import Features
from cost_models.model import MODELS, CostModel
from search_spaces import registry
from search_spaces.errors import ExitCode, MissingDependency, NothingValid, OtherIdentity
from search_spaces.schedule import Schedule
from search_spaces.task import Task

STRATEGIES = "autotune.strategies"


@dataclass(frozen=True)
class Settings:
    """How a task is tuned.

    Attributes:
        strategy: Name of the strategy.
        model: Name of the cost model for strategies that use one, "" for the strategy's own.
        trials: Trials in all, those of earlier runs of the same folder included.
        minutes: Time limit of this run's search, None for none.
        seed: Of everything random.
        jobs: Builds at a time, 0 for one on each core.
        policy: How candidates are measured.
        wait: Seconds to wait at most for a device that another tuner uses.
        device: A device class by name or file, "" for the one of the target's kind.
        race: Whether the finalists are raced in the end.
        prior: What strategies know that use a prior: "shipped", "none" or a file.
        sanitize: Tools of compute-sanitizer that finalists are run under; () for none.
        warm: Schedules measured right after the defaults of the sketches.
        site: Where builders and devices are, and which of these measure.
    """

    strategy: str = "hybrid"
    model: str = ""
    trials: int = 64
    minutes: float | None = None
    seed: int = 0
    jobs: int = 1
    policy: Policy = field(default_factory=Policy)
    wait: float = float("inf")
    device: str = ""
    race: bool = True
    prior: str = SHIPPED
    sanitize: tuple[str, ...] = ()
    warm: tuple[Schedule, ...] = ()
    site: Site = HERE


class StoppedTooEarly(NothingValid):
    """A search was stopped before any schedule was verified."""


@dataclass(frozen=True)
class Outcome:
    """What a run found.

    Attributes:
        log: All trials of the task, earlier runs included.
        entry: The best; None where nothing was verified.
        race: The final race; None where the run was stopped before it, or it did not end.
        new_trials: Trials of this run.
        search_seconds: From the start of the run to the end of the search, set-up included.
        seconds: The whole run.
        build_seconds: Seconds of building, summed over builders.
        device_seconds: Seconds in which the device was checked and timed on.
        stopped: Whether the user stopped it.
        journal: The journal's path.
        tuned_log: The tuned log's path.
        interrupted: Whether the user asked to stop at any time, be it when the search was over.
        terminated: Whether it was SIGTERM that asked.
    """

    log: RunLog
    entry: Entry | None
    race: RaceResult | None
    new_trials: int
    search_seconds: float
    seconds: float
    build_seconds: float
    device_seconds: float
    stopped: bool
    journal: Path
    tuned_log: Path
    interrupted: bool = False
    terminated: bool = False

    @property
    def exit_code(self) -> ExitCode:
        """Of the command: what a batch system stopped is done for this time, what a user stopped is interrupted."""
        return ExitCode.INTERRUPTED if self.stopped and not self.terminated else ExitCode.OK


def tune(
    task: Task,
    settings: Settings,
    folder: Path,
    trackers: Sequence[Tracker] = (),
    started: Callable[[], object] | None = None,
) -> Outcome:
    """Tunes `task` on the device at hand and leaves journal and tuned log in `folder`.

    Args:
        task: What to tune.
        settings: How.
        folder: The run's folder; a journal in it is continued.
        trackers: Who watches.
        started: Called once the device is ready.

    Raises:
        AutotuneError: The output folder, the device or a package is not as needed, or nothing could be verified.
    """
    calm_thread_pools()
    program = find_sanitizer() if settings.sanitize else None
    budget = Budget(settings.trials, (settings.minutes or float("inf")) * 60.0)
    with Journal(folder) as journal, stop_on_signals() as stop, scratch_folder() as scratch:
        queue = Queue(settings.wait, partial(_notice, trackers), stop)
        executor = settings.site.kind(settings.site, scratch)
        measuring = Measuring(task, settings.policy, settings.device)
        settings = replace(settings, jobs=settings.jobs or executor.slots())
        with closing(executor), closing(Measurer(executor, measuring, settings.jobs, queue)) as measurer:
            known = known_trials(folder, task)
            budget.trials = max(0, settings.trials - len(known.trials))
            plan = _plan(task, settings, measurer, journal, budget, trackers, stop)
            with ExitStack() as held:
                if program is not None:
                    sanitizer = held.enter_context(closing(Sanitizer(program, settings.sanitize, scratch)))
                    plan = replace(plan, sanitizer=sanitizer)
                try:
                    return replace(_tune(plan, task, settings, known, started), terminated=stop.terminated)
                except StoppedTooEarly as early:
                    early.exit_code = ExitCode.OK if stop.terminated else early.exit_code
                    raise
                except KeyboardInterrupt:
                    if not stop.terminated:
                        raise
                    waited = StoppedTooEarly("stopped while another tuner had the device", "start it again")
                    waited.exit_code = ExitCode.OK
                    raise waited from None


def _notice(trackers: Sequence[Tracker], line: str) -> None:
    for tracker in trackers:
        tracker.notice(line)


def _plan(
    task: Task,
    settings: Settings,
    measurer: Measurer,
    journal: Journal,
    budget: Budget,
    trackers: Sequence[Tracker],
    stop: Callable[[], bool],
) -> Search:
    make_strategy: type[Strategy] = registry.find(STRATEGIES, settings.strategy, "strategy")
    learner = _learner(task, settings, settings.model or make_strategy.model) if make_strategy.model else None
    context = context_of(task)
    known = chosen_prior(settings.prior) if make_strategy.uses_prior else None
    prior = known.for_task(task.space, context, task.hardware.model.name) if known is not None else None
    aids = learner.aids(context, prior) if learner is not None else Aids(None, context, prior)
    on_gpu, devices = task.target.kind == "cuda", measurer.devices
    return Search(
        measurer=measurer,
        strategy=make_strategy(task.space, np.random.default_rng(settings.seed), aids),
        learner=learner,
        journal=journal,
        run=uuid.uuid4().hex[:12],
        budget=budget,
        # On a GPU enough is in flight to keep builders and device busy; on a CPU they take turns, a wave each.
        batch=asked_at_a_time(settings.jobs) if on_gpu else WAVE,
        window=kept_in_flight(settings.jobs, devices) if on_gpu else WAVE * devices,
        waves=not on_gpu,
        trackers=trackers,
        stop=stop,
    )


def _tune(plan: Search, task: Task, settings: Settings, known: RunLog, started: Callable[[], object] | None) -> Outcome:
    """Search, race and tuned log, once everything is composed."""
    before = len(known.trials)
    loop = SearchLoop(plan, task.defaults, known, settings.warm)
    if not plan.waves:
        loop.begin()
    device = plan.measurer.device()
    _require_same_device(known, device)
    plan.budget.extend(plan.measurer.occupation.waited)
    if plan.waves:
        # Not before the host is this tuner's: its builds would disturb another one.
        loop.begin()
    record = _run_record(plan, task, settings, device)
    plan.journal.append(record)
    known.runs.append(record)
    if started is not None:
        started()
    loop.run()
    plan.strategy.save(plan.journal.path.parent)
    searched = plan.budget.elapsed
    stopped = plan.stop()
    result = _final_race(plan, known, task, settings, stopped=stopped)
    folder = plan.journal.path.parent
    return Outcome(
        log=known,
        race=result,
        tuned_log=write_tuned_log(folder, load_runs(folder)),
        entry=entry_of(known),
        new_trials=len(known.trials) - before,
        search_seconds=searched,
        seconds=plan.budget.elapsed,
        build_seconds=plan.measurer.occupation.build,
        device_seconds=plan.measurer.occupation.device,
        stopped=stopped,
        interrupted=plan.stop(),
        journal=plan.journal.path,
    )


def _require_same_device(known: RunLog, device: DeviceInfo) -> None:
    """Keeps times of two devices out of one log.

    Raises:
        OtherIdentity: The earlier trials were measured on another device.
    """
    for earlier in (run.device for run in known.runs[-1:]):
        if (earlier.name, earlier.arch, earlier.units) != (device.name, device.arch, device.units):
            raise OtherIdentity(
                f"the trials in this folder were measured on {earlier.name} ({earlier.units} units), "
                f"this is {device.name} ({device.units} units)",
                "choose another --out",
            )


def usable_task(task: Task) -> tuple[Task, list[str]]:
    """`task` without the sketches whose code generator is not usable here, and why each generator was left out.

    Raises:
        MissingDependency: No sketch is left.
    """
    missing = {
        name: reason
        for name, sketch in task.sketches.items()
        if (reason := find_generator(sketch.generator).missing()) is not None
    }
    absent = [reason for reason in task.refusals.values() if "not installed" in reason]
    reasons = sorted({*absent, *missing.values()})
    if reasons and len(missing) == len(task.sketches):
        raise MissingDependency(reasons[0])
    if missing:
        # Those that do not apply stay named: one of them may come in for what is left out.
        task = replace(task, only=tuple(n for n in (*task.sketches, *task.refusals) if n not in missing))
    return task, reasons


def known_trials(folder: Path, task: Task) -> RunLog:
    """Trials of `task` in the folder's journal; an empty log where it has none."""
    if has_records(folder):
        for log in load_runs(folder):
            if log.runs[0].task.key == task.key:
                return log
    return RunLog()


def _final_race(plan: Search, known: RunLog, task: Task, settings: Settings, *, stopped: bool) -> RaceResult | None:
    """The race; none where none is wanted, the user stopped the search or it did not end."""
    if stopped:
        if known.best is None:
            go_on = f"go on with: autotune run --resume {plan.journal.path.parent}"
            raise StoppedTooEarly("stopped before any schedule was verified", go_on)
        return None
    if not settings.race:
        return None
    try:
        return race(plan, known, task.default, settings.seed)
    except (Died, TimeoutError) as error:
        record = GivenUpRecord(plan.run, str(error) or "it took too long")
        plan.journal.append(record)
        known.given_up.append(record)
        return None


def _learner(task: Task, settings: Settings, model: str) -> Learner:
    made = registry.find(MODELS, model, "model")(Features.of_task(task), settings.seed)
    assert isinstance(made, CostModel)
    return Learner(made)


def _run_record(plan: Search, task: Task, settings: Settings, device: DeviceInfo) -> RunRecord:
    cost = task.operator.cost(task.workload)
    data, environment = TaskData.of(task), read_environment(tool_versions(task))
    return RunRecord(
        schema=SCHEMA,
        run=plan.run,
        started=now().isoformat(timespec="seconds"),
        task=data,
        device=device,
        foreign=not task.target.runs_on(device.arch),
        environment=environment,
        policy=settings.policy,
        strategy=settings.strategy,
        seed=settings.seed,
        trials=settings.trials,
        minutes=settings.minutes,
        floor_seconds=task.floor_seconds,
        operations=cost.operations,
        bytes=cost.bytes,
        identity=Identity.of(data, device, environment, settings.policy).fingerprint,
        roof=Roof.of(task.hardware, task.operator.arithmetic(task.workload)),
        prior=prior_name(settings.prior) if plan.strategy.uses_prior else NONE,
    )
