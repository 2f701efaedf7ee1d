"""Measures one workload of a suite: a schedule from a log or a search, then the contest with the libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.benchmark.contest import Admit, Admitted, Compete, Contested, setup
from autotune.benchmark.result import Asked, CaseResult, Rival
from autotune.benchmark.suite import Case
from autotune.builders import Builders, Built, local_builders
from autotune.clock import now
from autotune.devices.base import DeviceInfo
from autotune.devices.lock import Queue, device_lock
from autotune.environment import calm_thread_pools, read_environment
from autotune.generators.base import Artifact
from autotune.measurement import Policy
from autotune.process import Child
from autotune.race import ratio
from autotune.records import Roof
from autotune.runner import Died, Failure, started
from autotune.scratch import scratch_folder
from autotune.task_options import TaskOptions, make_task, on_device, require_device
from autotune.toolchain import tool_versions
from autotune.tune import Settings, StoppedTooEarly, tune, usable_task
from autotune.tuned_log import Entry, best_entries, entries_of
from autotune.worker import Identified, Identify
from search_spaces.errors import AutotuneError, NoDevice, NothingValid
from search_spaces.schedule import Schedule
from search_spaces.task import Task

_LEVEL = 0.95
_START_SECONDS = 300.0
# A search of a compiler that takes part may take minutes.
_ADMIT_SECONDS = 900.0
# Each direction of the copy that is the yardstick; far beyond any cache.
COPY_BYTES = 1 << 30
# Rounds shall take so long, about: long enough for a GPU's clocks to settle.
ROUND_SECONDS = {"cuda": 0.5, "llvm": 3.0}


class Stopped(Exception):
    """The user stopped a search."""


@dataclass(frozen=True)
class Terms:
    """What all cases of a benchmark share.

    Attributes:
        target: As `str(Target)`.
        device: Name of the device at hand.
        settings: How a workload is tuned.
        libraries: Who takes part.
        logs: Tuned logs, runs or journals that schedules are taken from first.
        folder: The benchmark's folder.
        say: Told in a line what happens.
    """

    target: str
    device: str
    settings: Settings
    libraries: tuple[str, ...]
    logs: tuple[Path, ...]
    folder: Path
    say: Callable[[str], object]

    def asked(self, case: Case) -> Asked:
        """The terms as a result records them."""
        settings = self.settings
        return Asked(
            case=case,
            target=self.target,
            device=self.device,
            seconds=(settings.minutes or 0.0) * 60.0,
            trials=settings.trials,
            strategy=settings.strategy,
            seed=settings.seed,
            cold=settings.policy.cold,
            libraries=self.libraries,
            logs=tuple(map(str, self.logs)),
        )


@dataclass(frozen=True)
class Chosen:
    """A schedule and where it is from."""

    schedule: Schedule
    source: str
    seconds: float | None
    trials: int


def measured(case: Case, terms: Terms) -> CaseResult:
    """One workload; what goes wrong with it is in the result.

    Raises:
        Stopped: The user stopped its search.
        NoDevice: There is no device, so that no other workload can be measured either.
    """
    asked, date = terms.asked(case), now().isoformat(timespec="seconds")
    try:
        task = _task(case, terms)
        return _contested(task, _chosen(case, task, terms), terms, asked, date)
    except (Stopped, NoDevice):
        raise
    except (Died, TimeoutError) as error:
        why = f"the contest did not end: {error or 'time-out'}"
    except AutotuneError as error:
        why = str(error)
    except Exception as error:
        # One operator's fault must not end a suite of hours.
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    return CaseResult(asked, date, failed=why)


def _task(case: Case, terms: Terms) -> Task:
    named = TaskOptions(case.op, terms.target, None, case.shape, case.dtype)
    task = make_task(named, measure_roof=True)
    task = on_device(task, require_device(task, foreign=False))
    return usable_task(task)[0]


def _chosen(case: Case, task: Task, terms: Terms) -> Chosen:
    """The schedule of a given log, else of a search, which goes on where an interrupted benchmark left it."""
    for path in terms.logs:
        entry = _recorded(entries_of(path), task)
        if entry is not None:
            return Chosen(Schedule.from_json(entry.schedule), str(path), None, entry.trials)
    folder = terms.folder / "tuned" / case.slug
    try:
        outcome = tune(task, terms.settings, folder)
    except StoppedTooEarly as error:
        raise Stopped from error
    if outcome.interrupted:
        raise Stopped
    if outcome.entry is None:
        raise NothingValid("no schedule could be verified", f"see 'autotune show {folder}'")
    schedule = Schedule.from_json(outcome.entry.schedule)
    return Chosen(schedule, "tuned here", outcome.search_seconds, len(outcome.log.trials))


def _recorded(entries: Sequence[Entry], task: Task) -> Entry | None:
    """The best entry of the task's workload and target whose schedule is still legal."""
    mine = [e for e in entries if e.task.workload == task.workload and e.task.target == str(task.target)]
    legal = [e for e in best_entries(mine) if task.space.why_not(Schedule.from_json(e.schedule)) is None]
    return min(legal, key=lambda e: e.seconds, default=None)


def _contested(task: Task, chosen: Chosen, terms: Terms, asked: Asked, date: str) -> CaseResult:
    calm_thread_pools()
    policy = terms.settings.policy
    cost = task.operator.cost(task.workload)
    counts = task.target.kind == "cuda" and asked.case.mark.counts_copy(cost.bytes)
    # The second one moves as many bytes as the workload: at its size starting and ending cost as much.
    copies = (COPY_BYTES, int(cost.bytes) // 2) if counts else ()
    with scratch_folder() as scratch:
        artifact = _built(task, chosen.schedule, policy, scratch)
        job = Compete(chosen.schedule, artifact, (), ROUND_SECONDS[task.target.kind], terms.settings.seed, copies)
        with closing(Arena(task, policy, scratch, terms)) as arena:
            device = arena.device()
            errors, refused = arena.admit()
            found = arena.compete(job)
    if found.fault:
        raise NothingValid(f"the tuned kernel is not right in the contest: {found.fault}")
    return CaseResult(
        asked=asked,
        date=date,
        workload=task.workload,
        device=device,
        environment=read_environment(tool_versions(task)),
        schedule=dict(chosen.schedule.items),
        source=chosen.source,
        search_seconds=chosen.seconds,
        search_trials=chosen.trials,
        samples=found.tuned,
        error=found.error,
        rivals={n: Rival(times, errors[n], ratio(times, found.tuned, _LEVEL)) for n, times in found.library.items()},
        refused=refused,
        operations=cost.operations,
        bytes=cost.bytes,
        floor_seconds=task.floor_seconds,
        peak=Roof.of(task.hardware, task.operator.arithmetic(task.workload)).peak,
        copy_samples=found.copies.get(COPY_BYTES, ()),
        copied=2.0 * COPY_BYTES,
        same_copy_samples=found.copies.get(copies[-1], ()) if copies else (),
        conditions=found.conditions,
    )


def _built(task: Task, schedule: Schedule, policy: Policy, folder: Path) -> Artifact:
    done: list[Built] = []
    with closing(Builders(task, local_builders(task, folder, 1), policy.build_seconds)) as builders:
        builders.build_all([schedule], done.append)
    (built,) = done
    if built.artifact is None:
        raise NothingValid(f"the tuned schedule does not build: {built.detail}")
    return built.artifact


class Arena:
    """The child in which a contest takes place, and the device held for it.

    Args:
        task: What is computed.
        policy: How samples are taken.
        folder: For what is built and the child's log.
        terms: Who takes part.
    """

    def __init__(self, task: Task, policy: Policy, folder: Path, terms: Terms) -> None:
        self._terms = terms
        self._held = ExitStack()
        self._policy = policy
        self._admitted: list[str] = []
        self._child: Child[object] = Child(
            setup,
            (task, policy, folder, terms.settings.device),
            folder / "contest.log",
            fresh=task.target.kind == "cuda",
        )

    def device(self) -> DeviceInfo:
        """Starts the child and waits until the device is this process's alone.

        Raises:
            NoDevice: The device does not start, or another tuner keeps it.
        """
        self._child.send(Identify(), _START_SECONDS)
        remedy = "run 'autotune doctor'"
        answer = started(self._child, "the device did not start", remedy, remedy)
        assert isinstance(answer, Identified)
        queue = Queue(self._terms.settings.wait, self._terms.say)
        self._held.enter_context(device_lock(answer.info, answer.uuid, queue))
        return answer.info

    def admit(self) -> tuple[dict[str, float], dict[str, str]]:
        """Tries every library's calls; one that ends the child, or hangs, takes no part.

        Returns:
            Deviation of each call that works; and why others do not.
        """
        errors: dict[str, float] = {}
        refused: dict[str, str] = {}
        for name in self._terms.libraries:
            try:
                answer = self._ask(Admit(name), _ADMIT_SECONDS)
            except (Died, TimeoutError) as error:
                refused[name] = str(error) or f"took longer than {_ADMIT_SECONDS:g} s"
                continue
            assert isinstance(answer, Admitted)
            errors |= answer.errors
            refused |= answer.refused
            self._admitted.append(name)
        return errors, refused

    def compete(self, job: Compete) -> Contested:
        """The rounds.

        Raises:
            Died: The child ended.
            TimeoutError: It took too long.
        """
        answer = self._ask(replace(job, libraries=tuple(self._admitted)), _ADMIT_SECONDS)
        assert isinstance(answer, Contested)
        return answer

    def _ask(self, job: object, seconds: float) -> object:
        self._child.send(job, seconds)
        answer = self._child.answer()
        if isinstance(answer, Failure):
            # A failed launch may have spoilt the device for this process.
            self._child.kill()
            raise Died(answer.summary)
        return answer

    def close(self) -> None:
        """Ends the child and lets the next tuner have the device."""
        self._child.kill()
        self._held.close()
