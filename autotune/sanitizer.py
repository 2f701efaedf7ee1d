"""NVIDIA's compute-sanitizer over finalists: each is run once in a process of its own that the sanitizer watches."""

from __future__ import annotations

import pickle
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.environment import cuda_folder, with_variables
from autotune.generators.base import Artifact
from autotune.process import Child
from autotune.runner import Died, Failure
from search_spaces.errors import AutotuneError, MissingDependency
from search_spaces.space import Schedule
from search_spaces.task import Task

# memcheck: memory beside the arguments. racecheck: races in shared memory. initcheck: reads of what nobody wrote.
# synccheck: barriers that not all threads reach.
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
PROGRAM = "compute-sanitizer"
# Instrumented kernels take many times as long, and torch starts slowly under it.
SECONDS = 300.0
_PADDING = 256 << 10
_ERRORS_FOUND = 86
_PRINTED = 10
_SUMMARY = re.compile(r"^=+ \w+ SUMMARY: ")
_HEAD = re.compile(r"^=+ (?=\S)(?P<text>.*)$")
_PLACE = re.compile(r"^=+ +(?P<text>at .*)$")
# What it says of itself, of the process or of calls that fail harmlessly. Race findings are the only "Error:".
_NO_FINDING = re.compile(r"COMPUTE-SANITIZER|Warning|Program hit|Internal Sanitizer|Target application|Error: (?!Race)")


def find_sanitizer() -> Path:
    """The program, on PATH or in the CUDA toolkit.

    Raises:
        MissingDependency: It is not installed.
    """
    toolkit = cuda_folder() / "bin"
    found = shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(toolkit))
    if found is None:
        raise MissingDependency(
            f"{PROGRAM} is neither on PATH nor in {toolkit}",
            "install the CUDA toolkit, put its bin folder on PATH or set CUDA_HOME; or leave out --sanitize",
        )
    return Path(found)


def parse_tools(text: str | None) -> tuple[str, ...]:
    """The tools named in the value of `--sanitize`, in order; () where it was not given.

    Raises:
        AutotuneError: There is no such tool.
    """
    names = tuple(name for name in (text or "").split(",") if name)
    for name in names:
        if name not in TOOLS:
            raise AutotuneError(f"unknown tool of {PROGRAM} '{name}'", f"known: {', '.join(TOOLS)}")
    return names


def command_line(program: Path, tool: str, job: Path, log: Path) -> list[str]:
    """Runs `job` under a tool; its report goes to `log`.

    API errors are not asked for: libraries probe with calls that fail. Padding keeps a read beside one argument from
    landing in the next.
    """
    padding = ["--padding", str(_PADDING)] if tool == "memcheck" else []
    options = ["--tool", tool, "--log-file", str(log), "--error-exitcode", str(_ERRORS_FOUND)]
    options += ["--print-limit", str(_PRINTED), "--show-backtrace", "no", "--target-processes", "application-only"]
    options += ["--launch-timeout", str(int(SECONDS)), *padding]
    if tool == "memcheck":
        options += ["--report-api-errors", "no"]
    return [str(program), *options, sys.executable, "-P", "-m", "autotune.sanitized", str(job)]


@dataclass(frozen=True)
class Report:
    """What a tool found.

    Attributes:
        finding: Its first finding in a line, "" where it found nothing.
        whole: Whether it lived to sum up.
    """

    finding: str
    whole: bool


def parse_report(text: str) -> Report:
    """Reads a report.

    A finding is a line with one space after the prefix; what is known of it follows with more.
    """
    lines = text.splitlines()
    summed = any(_SUMMARY.match(line) for line in lines)
    for number, line in enumerate(lines):
        head = _HEAD.match(line)
        if head is None or _SUMMARY.match(line) or _NO_FINDING.match(head["text"]):
            continue
        place = _PLACE.match(lines[number + 1]) if number + 1 < len(lines) else None
        return Report(" ".join([head["text"], *([place["text"]] if place else [])])[:300], summed)
    return Report("", summed)


@dataclass(frozen=True)
class SanitizerJob:
    """What the watched process runs.

    Attributes:
        task: The task.
        schedule: The candidate.
        artifact: Its binary.
        folder: The run's cache folder.
        device: A device class by name or file, "" for the one of the target's kind.
        input_seed: Of the inputs.
        variables: Environment variables that leave the process the device that it is to run on.
    """

    task: Task
    schedule: Schedule
    artifact: Artifact
    folder: Path
    device: str
    input_seed: int
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SanitizerAnswer:
    """How a candidate did.

    Attributes:
        finding: What is wrong with it, "" where nothing was found.
        unanswered: Why the tool gave no answer, "" where it did.
    """

    finding: str = ""
    unanswered: str = ""


class Sanitizer:
    """Runs candidates under tools, in a child that is killed with all it started when it takes too long.

    Args:
        program: As `find_sanitizer` gives it.
        tools: Of TOOLS.
        folder: Takes jobs and reports.
        seconds: Time-out of one candidate under one tool.
    """

    def __init__(self, program: Path, tools: Sequence[str], folder: Path, seconds: float = SECONDS) -> None:
        self.tools = tuple(tools)
        self._seconds = seconds
        self._child: Child[tuple[str, SanitizerJob]] = Child(_setup, (program, folder), folder / "sanitizer.log")

    def check(self, job: SanitizerJob) -> SanitizerAnswer:
        """Under one tool after the other, until one finds something or does not answer."""
        for tool in self.tools:
            found = self._ask(tool, job)
            if found.finding or found.unanswered:
                return found
        return SanitizerAnswer()

    def _ask(self, tool: str, job: SanitizerJob) -> SanitizerAnswer:
        self._child.send((tool, job), self._seconds)
        where = f"{PROGRAM} {tool}"
        try:
            answer = self._child.answer()
        except TimeoutError:
            return SanitizerAnswer(unanswered=f"{where} ran longer than {self._seconds:g} s")
        except Died as error:
            return SanitizerAnswer(unanswered=f"{where}: {error}")
        if isinstance(answer, Failure):
            return SanitizerAnswer(unanswered=f"{where}: {answer.summary}")
        assert isinstance(answer, SanitizerAnswer)
        return answer

    def close(self) -> None:
        """Kills what still runs."""
        self._child.kill()


def _setup(program: Path, folder: Path) -> Callable[[tuple[str, SanitizerJob]], SanitizerAnswer]:
    """Runs in the child that waits for the tool."""

    def handle(asked: tuple[str, SanitizerJob]) -> SanitizerAnswer:
        tool, job = asked
        path, log = folder / "sanitized.job", folder / "sanitized.report"
        path.write_bytes(pickle.dumps(job))
        path.chmod(0o600)
        log.unlink(missing_ok=True)
        done = subprocess.run(
            command_line(program, tool, path, log),
            env={**_variables(), **job.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        report = parse_report(log.read_text(errors="replace") if log.is_file() else "")
        if report.finding:
            return SanitizerAnswer(finding=f"{PROGRAM} {tool}: {report.finding}")
        if done.returncode or not report.whole:
            said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
            reason = said[-1] if said else f"exit code {done.returncode} and no report"
            return SanitizerAnswer(unanswered=f"{PROGRAM} {tool}: {reason}"[:300])
        return SanitizerAnswer()

    return handle


def _variables() -> Mapping[str, str]:
    """Each tensor is an allocation of its own, whose ends are then seen; modules are found as they are here."""
    return with_variables(PYTORCH_NO_CUDA_MEMORY_CACHING="1", PYTHONPATH=":".join(p for p in sys.path if p))
