"""One device of a run: the process that has it, the candidate on it, and how it compares with the other devices."""

from __future__ import annotations

from dataclasses import replace

from autotune.builders import Built
from autotune.executors.base import Seat
from autotune.generators.base import Artifact
from autotune.measurement import Measurement, Phases, Status
from autotune.runner import Died, Failure, Lost, started
from autotune.worker import Identified, Identify, Measure, Measured, Prepare
from search_spaces.errors import NoDevice
from search_spaces.space import Schedule

START_SECONDS = 300.0
# Starts in a row that may fail of a device that had worked.
_STARTS = 3


class DeviceWorker:
    """A device and its process, which is started anew where it ended.

    Args:
        seat: The device and who takes its jobs.
        run_seconds: Time-out of one candidate.

    Attributes:
        found: Who the device is, None until it said so.
        candidate: What is being measured, None where nothing is, or where it is the calibration.
        suspect: How a candidate ended the process, until it is known that the device still works.
        default_samples: Seconds of the untuned default on it, None until they were taken; () where it failed.
        factor: What its times are multiplied by, None until it has been compared with the others.
    """

    def __init__(self, seat: Seat, run_seconds: float) -> None:
        self.place = seat.place
        self.runner = seat.runner
        self.found: Identified | None = None
        self.candidate: Built | None = None
        self.suspect: tuple[Built, Measured] | None = None
        self.default_samples: tuple[float, ...] | None = None
        self.factor: float | None = None
        self._run_seconds = run_seconds
        self._worked = False
        self._failed_starts = 0

    @property
    def label(self) -> str:
        """What records call the device: its identifier, or its number where it has none."""
        return (self.found.uuid if self.found is not None else "") or self.place.name

    @property
    def busy(self) -> bool:
        """Whether something is being asked of it."""
        return self.runner.job is not None

    def identify(self) -> None:
        """Starts the process and asks who the device is."""
        self.runner.send(Identify(), START_SECONDS)

    def identified(self) -> Identified:
        """Waits for the answer.

        Raises:
            NoDevice: The process does not start on the device.
        """
        answer = self._started()
        assert isinstance(answer, Identified)
        self.found = answer
        return answer

    def prepare(self) -> None:
        """Has inputs and references made, in a new process where the last one ended."""
        self.runner.send(Prepare(), START_SECONDS)

    def prepared(self) -> bool:
        """Takes the answer in.

        Returns:
            Whether the device is ready. If not, it is worth another try.

        Raises:
            NoDevice: It has failed too often.
        """
        try:
            self._started()
        except NoDevice as error:
            self._failed_starts += 1
            if not self._worked or self._failed_starts >= _STARTS or isinstance(error.__cause__, Lost):
                raise
            self.runner.kill()
            return False
        self._worked, self._failed_starts = True, 0
        return True

    def _started(self) -> object:
        """The answer of a process that starts."""
        answer: object = started(
            self.runner, "the device worker did not start", "see worker.log", "run 'autotune doctor'"
        )
        return answer

    def measure(self, built: Built, limit: float) -> None:
        """Starts a candidate that was built; its first samples make it hopeless above `limit` corrected seconds."""
        assert built.artifact is not None
        assert self.factor is not None
        self.candidate = built
        self.runner.send(Measure(built.schedule, built.artifact, limit / self.factor), self._run_seconds)

    def calibrate(self, schedule: Schedule, artifact: Artifact) -> None:
        """Starts the schedule by which devices are compared."""
        self.runner.send(Measure(schedule, artifact, float("inf")), self._run_seconds)

    def received(self) -> Measured:
        """How a measurement ended; the process ends with it where it may have spoilt it.

        Raises:
            Lost: The device is gone, by no fault of the candidate.
        """
        try:
            answer = self.runner.receive()
        except TimeoutError:
            return Measured(Status.TIMEOUT, detail=f"ran longer than {self._run_seconds:g} s")
        except Lost:
            raise
        except Died as error:
            return Measured(Status.CRASHED, detail=str(error))
        if isinstance(answer, Failure):
            answer = Measured(Status.LAUNCH_ERROR, detail=answer.summary, poisoned=True)
        assert isinstance(answer, Measured)
        if answer.poisoned:
            self.runner.kill()
        return answer

    def recorded(self, built: Built, answer: Measured) -> Measurement:
        """The measurement of a candidate, its times corrected by the device's factor."""
        assert built.artifact is not None
        factor = self.factor or 1.0
        return Measurement(
            schedule=built.schedule,
            status=answer.status,
            samples=tuple(s * factor for s in answer.samples),
            detail=answer.detail,
            error=answer.error,
            deterministic=answer.deterministic,
            conditions=answer.conditions,
            resources=built.artifact.resources,
            binary=built.artifact.sha256,
            phases=replace(answer.phases, build=built.seconds),
            device=self.label,
        )


def lost_with(built: Built, label: str) -> Measurement:
    """The measurement of a candidate that two devices were lost with."""
    return Measurement(
        built.schedule,
        Status.CRASHED,
        detail="two devices were lost with it",
        phases=Phases(build=built.seconds),
        device=label,
    )
