"""What runs on the machines of a Ray cluster: each Ray process has one killable child that answers its jobs.

So a candidate or a compiler that hangs or aborts ends a child, as it does without Ray, and a Ray process that ends has
lost its machine.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.builders import setup_builder
from autotune.clock import monotonic
from autotune.devices.lock import Queue, device_lock
from autotune.generators.base import Artifact
from autotune.measurement import Policy
from autotune.process import Child
from autotune.runner import Died, Failure
from autotune.scratch import host_folder
from autotune.worker import Identified, relocated
from autotune.worker import setup as setup_worker
from search_spaces import registry
from search_spaces.errors import AutotuneError
from search_spaces.space import Schedule
from search_spaces.task import Task

# Candidates that a Ray process builds for; the space of one takes up to seconds to make.
_MOST_BUILDERS = 4


@dataclass(frozen=True)
class Luggage:
    """What every machine needs of a run.

    Attributes:
        run: Name of the run's folder there.
        files: Path on the driver's machine -> text, of plug-ins that were given by file.
    """

    run: str
    files: Mapping[str, str]

    def folder(self) -> Path:
        """The run's folder on this machine, shared by its Ray processes, whose parent is Ray's own on the machine."""
        return host_folder(os.getppid(), self.run)


@dataclass(frozen=True)
class Packed:
    """A built schedule that travels: the artifact, and its file or folder as a zip archive."""

    artifact: Artifact
    archive: bytes


@dataclass(frozen=True)
class Ended:
    """How a job ended that has no answer.

    Attributes:
        why: How the child died, "" where it took too long.
    """

    why: str = ""


@dataclass(frozen=True)
class Answered:
    """How a job went.

    Attributes:
        answer: What the child answered, a Failure where it raised, or how it ended.
        seconds: What it took there, the start of a child included.
    """

    answer: object
    seconds: float


def pack(artifact: Artifact) -> Packed:
    """Reads an artifact's file or folder."""
    path, buffer = Path(artifact.path), io.BytesIO()
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for file in files:
            archive.write(file, file.relative_to(path.parent))
    return Packed(replace(artifact, path=path.name), buffer.getvalue())


def unpack(packed: Packed, folder: Path) -> Artifact:
    """Leaves the file or folder in `folder`, named by the artifact's hash; once, however many processes do it."""
    place = folder / packed.artifact.sha256
    if not place.exists():
        part = folder / f"{packed.artifact.sha256}.{os.getpid()}"
        # Which leaves nothing outside of the folder, whatever names the archive has.
        with zipfile.ZipFile(io.BytesIO(packed.archive)) as archive:
            archive.extractall(part)
        try:
            part.rename(place)
        except OSError:  # another process was first
            shutil.rmtree(part)
    return replace(packed.artifact, path=str(place / packed.artifact.path))


def adopting(files: Mapping[str, Path], setup: Callable[..., Any], *arguments: object) -> Any:
    """Runs in a child: makes the driver's plug-in files known, then sets it up."""
    for path, copy in files.items():
        registry.load_file(Path(path), copy)
    return setup(*arguments)


def _copies(luggage: Luggage, folder: Path) -> dict[str, Path]:
    """The driver's plug-in files, written here, beside each other as they were there."""
    copies = {path: folder / Path(path).relative_to("/") for path in luggage.files}
    for path, copy in copies.items():
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(luggage.files[path])
    return copies


def _answered(child: Child[Any], job: object, seconds: float) -> Answered:
    started = monotonic()
    child.send(job, seconds)
    answer: object
    try:
        answer = child.answer()
    except TimeoutError:
        answer = Ended()
    except Died as error:
        answer = Ended(str(error))
    return Answered(answer, monotonic() - started)


class DeviceHost:
    """An actor: the worker of one device, in a child.

    Args:
        luggage: What the run needs.
        task: What is measured.
        policy: How.
        device: A device class by name or file, "" for the one of the target's kind.
    """

    def __init__(self, luggage: Luggage, task: Task, policy: Policy, device: str) -> None:
        folder = luggage.folder()
        self._cache = folder / "binaries"
        self._cache.mkdir(exist_ok=True)
        arguments = (_copies(luggage, folder / f"files-{os.getpid()}"), setup_worker, task, policy, folder, device)
        log = folder / f"worker-{os.getpid()}.log"
        self._child: Child[object] = Child(adopting, arguments, log, fresh=task.target.kind == "cuda")
        self._held = ExitStack()
        self._is_held = False

    def answer(self, job: object, seconds: float, binaries: Mapping[str, Any]) -> Answered:
        """The child's answer to a job of `autotune.worker`.

        Args:
            job: The job.
            seconds: It must be answered within so long.
            binaries: Hash -> reference to the Packed, which is fetched where this machine has not got it yet.
        """

        def here(artifact: Artifact) -> Artifact:
            place = self._cache / artifact.sha256
            if place.exists():
                return replace(artifact, path=str(place / artifact.path))
            return unpack(registry.optional("ray", "ray").get(binaries[artifact.sha256]), self._cache)

        answered = _answered(self._child, relocated(job, here), seconds)
        if isinstance(answered.answer, Identified) and not self._is_held:
            return replace(answered, answer=self._alone(answered.answer))
        return answered

    def _alone(self, answer: Identified) -> Identified | Failure:
        """Keeps tuners without Ray on this machine off the device, as soon as it is known."""
        try:
            self._held.enter_context(device_lock(answer.info, answer.uuid, Queue(0.0)))
        except AutotuneError as error:
            self._child.kill()
            return Failure(error.message, "")
        self._is_held = True
        return answer

    def end(self) -> None:
        """Kills the child; the next job starts another one."""
        self._child.kill()


_builders: dict[bytes, Child[Schedule]] = {}


def build(luggage: Luggage, pickled: bytes, task: Task, schedule: Schedule, seconds: float) -> Answered:
    """A Ray task: builds one schedule in a child that this Ray process keeps for the next one.

    Args:
        luggage: What the run needs.
        pickled: Tells tasks apart.
        task: The task.
        schedule: What is built.
        seconds: Time-out.

    Returns:
        A Packed, or why there is none.
    """
    child = _builders.get(pickled)
    if child is None:
        if len(_builders) >= _MOST_BUILDERS:
            _builders.pop(next(iter(_builders))).kill()
        folder = luggage.folder()
        arguments = (_copies(luggage, folder / f"files-{os.getpid()}"), setup_builder, task, folder)
        child = _builders[pickled] = Child(adopting, arguments, folder / f"builder-{os.getpid()}.log")
    answered = _answered(child, schedule, seconds)
    if isinstance(answered.answer, Artifact):
        return replace(answered, answer=pack(answered.answer))
    return answered


def clear(luggage: Luggage) -> None:
    """A Ray task: removes the run's folder from a machine."""
    with contextlib.suppress(OSError):
        shutil.rmtree(luggage.folder())
