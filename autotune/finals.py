"""What finalists go through, all on one device: more inputs, the sanitizer, odd workloads, the race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import cast

from autotune.builders import Builders, Built
from autotune.device_pool import DevicePool
from autotune.edges import EdgeFault, EdgeReport, edge_cases
from autotune.executors.base import Executor, Measuring
from autotune.generators.base import Artifact
from autotune.look import Look
from autotune.measurement import Status
from autotune.runner import Died, Failure
from autotune.sanitizer import Sanitizer, SanitizerJob
from autotune.worker import Measured, Rounds, Verify, VerifyEdge
from search_spaces.space import Schedule

Entries = tuple[tuple[Schedule, Artifact], ...]


class Finals:
    """Asks one device about schedules; to be used when no candidate is in flight.

    Args:
        pool: The devices; the first is asked.
        executor: Builds for odd workloads.
        measuring: What is measured.
        jobs: Builds at a time.
        build: Gives those of some schedules that can be built, with their binaries.
    """

    def __init__(
        self,
        pool: DevicePool,
        executor: Executor,
        measuring: Measuring,
        jobs: int,
        build: Callable[[Sequence[Schedule]], Entries],
    ) -> None:
        self._pool = pool
        self._executor = executor
        self._measuring = measuring
        self._jobs = jobs
        self._build = build

    def verify(self, schedules: Sequence[Schedule]) -> dict[Schedule, Measured]:
        """Checks finalists on inputs of other distributions.

        Returns:
            How each ended that failed.
        """
        answers = self._answers(self._build(schedules), Verify, "on inputs of another distribution, ")
        return {s: a for s, a in answers.items() if a.status is not Status.OK}

    def sanitize(
        self, sanitizer: Sanitizer, schedules: Sequence[Schedule], notice: Callable[[str], object]
    ) -> dict[Schedule, Measured]:
        """Runs finalists under compute-sanitizer.

        Args:
            sanitizer: Which tools.
            schedules: Who.
            notice: Told where a tool gives no answer, which is no fault of the schedule.

        Returns:
            How each ended in which something was found.
        """
        asked, failed = self._measuring, {}
        variables = self._pool.first().place.variables
        for schedule, artifact in self._build(schedules):
            folder, seed = self._executor.folder, asked.policy.input_seed
            job = SanitizerJob(asked.task, schedule, artifact, folder, asked.device, seed, variables)
            answer = sanitizer.check(job)
            if answer.unanswered:
                notice(f"not checked, {answer.unanswered}: {schedule}")
            if answer.finding:
                failed[schedule] = Measured(Status.WRONG_RESULT, detail=answer.finding)
        return failed

    def check_edges(self, schedules: Sequence[Schedule]) -> EdgeReport:
        """Checks the sketches of finalists on small odd workloads.

        What cannot be built for such a workload is passed over.
        """
        checked, faults = 0, []
        for case in edge_cases(self._measuring.task, schedules):
            artifacts: dict[Schedule, Artifact] = {}

            def keep(built: Built, artifacts: dict[Schedule, Artifact] = artifacts) -> None:
                if built.artifact is not None:
                    artifacts[built.schedule] = built.artifact

            # Each builder makes the workload's space anew, which on a CPU takes longer than a build.
            jobs = 1 if case.task.target.kind == "llvm" else min(self._jobs, len(case.schedules))
            runners = self._executor.builders(case.task, jobs)
            with closing(Builders(case.task, runners, self._measuring.policy.build_seconds)) as builders:
                builders.build_all(list(case.schedules), keep)
            generators = {s: case.task.sketch_of(s).generator for s in artifacts}
            ask = partial(VerifyEdge, task=case.task, generators=generators)
            answers = self._answers(tuple(artifacts.items()), ask, "")
            checked += len(answers)
            faults += [
                EdgeFault(case.task.workload, s, case.schedules[s], a.status, a.detail)
                for s, a in answers.items()
                if a.status is not Status.OK
            ]
        return EdgeReport(checked, tuple(faults))

    def _answers(self, entries: Entries, ask: Callable[[Entries], object], where: str) -> dict[Schedule, Measured]:
        """The worker's answer for each; a fault says `where`."""
        if not entries:
            return {}
        answers = self._asked(entries, ask, where)
        if isinstance(answers, Measured):
            # One of them ended the worker, or poisoned the device: one by one, so that it is known which.
            alone = [self._asked((entry,), ask, where) for entry in entries]
            answers = [a if isinstance(a, Measured) else a[0] for a in alone]
        return {s: a for (s, _), a in zip(entries, answers, strict=True)}

    def _asked(self, entries: Entries, ask: Callable[[Entries], object], where: str) -> Sequence[Measured] | Measured:
        """The worker's answers; how the worker ended where it did not live to give them."""
        runner = self._pool.first().runner
        seconds = self._measuring.policy.run_seconds * (1 + len(entries))
        runner.send(ask(entries), seconds)
        try:
            answer = runner.answer()
        except TimeoutError:
            return Measured(Status.TIMEOUT, detail=f"{where}ran longer than {seconds:g} s")
        except Died as error:
            return Measured(Status.CRASHED, detail=f"{where}{error}")
        if isinstance(answer, Failure):
            runner.kill()
            return Measured(Status.LAUNCH_ERROR, detail=f"{where}{answer.summary}")
        return cast(tuple[Measured, ...], answer)

    def race(
        self, schedules: Sequence[Schedule], rounds: int, seed: int, library: bool, anchor: Schedule | None = None
    ) -> Look:
        """Times `schedules` and the library's calls interleaved.

        Args:
            schedules: Who races.
            rounds: How often.
            seed: Of the order.
            library: Whether the library's calls take part.
            anchor: Who is timed first and last.

        Raises:
            Died: The worker ended in the race.
            TimeoutError: It took too long.
        """
        job = Rounds(self._build(schedules), rounds, seed, library, anchor)
        runner = self._pool.first().runner
        runner.send(job, self._measuring.policy.run_seconds * len(schedules))
        answer = runner.answer()
        if isinstance(answer, Failure):
            runner.kill()
            raise Died(answer.summary)
        assert isinstance(answer, Look)
        return answer
