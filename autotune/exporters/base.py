"""Exporters: the winners of a tuned log in the format of a consumer, opened again by the consumer itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from autotune.recall import Winner
from search_spaces.errors import AutotuneError, ExitCode


class ExportFault(AutotuneError):
    """A consumer that does not take what was written for it."""

    exit_code = ExitCode.DOES_NOT_HOLD


class Exporter(ABC):
    """One format: a file of this folder with an instance named EXPORTER.

    Class attributes:
        summary: One line for `autotune export --help`.
        packages: Distributions whose versions the files are bound to.
    """

    summary: str
    packages: tuple[str, ...] = ()

    @abstractmethod
    def missing(self) -> str | None:
        """Why the consumer cannot be asked on this machine, with the remedy; None where it can. Imports nothing."""

    @abstractmethod
    def why_not(self, winner: Winner) -> str | None:
        """Why this winner cannot be said in the format; None where it can."""

    @abstractmethod
    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """Writes the winners, all of them expressible, into an empty folder that is moved afterwards.

        Raises:
            ExportFault: Something in between refuses a winner.
        """

    @abstractmethod
    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Opens what `write` left with the consumer's own loader and compares.

        Returns:
            What the consumer's user must know, a line each.

        Raises:
            ExportFault: The consumer does not read it, or reads something else than was meant.
        """


def slug(text: str) -> str:
    """A text as part of a file's name: what is neither letter, digit nor dot becomes one hyphen."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c == ".") else "-" for c in text)
    return "-".join(filter(None, kept.split("-"))).strip(".") or "unnamed"
