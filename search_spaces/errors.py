"""The errors a user can cause, each with its remedy and a documented exit code."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line; the README lists them for users."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    MISSING_DEPENDENCY = 3
    NO_DEVICE = 4
    BAD_LOG = 5
    NOTHING_VALID = 6
    CANNOT_WRITE = 7
    DOES_NOT_HOLD = 8
    INTERRUPTED = 130


class AutotuneError(Exception):
    """Something the user can mend: one line that says what is wrong and what to do.

    Names in it may come from a stranger's file, so what no terminal should be sent is written as an escape.

    Args:
        message: What is wrong, naming the thing as the user wrote it.
        hint: The remedy, or "" where the message already holds it.
    """

    exit_code = ExitCode.USAGE

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = _line(message)
        self.hint = _line(hint)
        super().__init__(f"{self.message}; {self.hint}" if hint else self.message)


def _line(text: str) -> str:
    """`text` in one line that any terminal can show."""
    return "".join(c if c.isprintable() else " " if c.isspace() else ascii(c)[1:-1] for c in text)


class UnknownName(AutotuneError):
    """A name that is not on a closed list (operator, strategy, arch, knob, dtype, axis)."""

    @classmethod
    def of(cls, what: str, name: str, known: Iterable[str]) -> UnknownName:
        """Builds the error with "did you mean" and the list of what there is."""
        names = sorted(known)
        close = get_close_matches(name, names, n=1)
        guess = f"did you mean '{close[0]}'? " if close else ""
        return cls(f"unknown {what} '{name}'", f"{guess}known: {', '.join(names) or 'none'}")


class InvalidWorkload(AutotuneError):
    """A shape, dtype or option with which the operator cannot be built."""


class InvalidSchedule(AutotuneError):
    """A schedule that is not in its space."""


class MissingDependency(AutotuneError):
    """A package that this request needs and this machine lacks."""

    exit_code = ExitCode.MISSING_DEPENDENCY


class NoDevice(AutotuneError):
    """No device, or one that is not what the target asks for."""

    exit_code = ExitCode.NO_DEVICE


class BadLog(AutotuneError):
    """A journal or tuned log that cannot be read as one."""

    exit_code = ExitCode.BAD_LOG


class NothingValid(AutotuneError):
    """A search in which no schedule could be built, run and verified."""

    exit_code = ExitCode.NOTHING_VALID


class CannotWrite(AutotuneError):
    """An output folder or file that cannot be written."""

    exit_code = ExitCode.CANNOT_WRITE


class OtherIdentity(AutotuneError):
    """A record of another device, software or source than what is here, which the reader's policy refuses."""

    exit_code = ExitCode.DOES_NOT_HOLD
