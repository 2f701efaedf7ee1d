"""What another tuner must give so that its strategies can be compared: the trace of one search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from autotune.comparison.trace import Floats, Trace
from autotune.recordings.recording import Recording
from search_spaces import registry
from search_spaces.errors import UnknownName

RIVALS = "autotune.comparison.rivals"


class Rival(ABC):
    """A tuner whose strategies are named `tuner:strategy`, the tuner as its file is called, with hyphens.

    Options of the strategy may follow, `tuner:strategy:option=value:option=value`; else it has its defaults.

    Attributes:
        distribution: What must be installed, as the package index calls it.
    """

    distribution: ClassVar[str]

    @abstractmethod
    def names(self) -> Sequence[str]:
        """Its strategies.

        Raises:
            MissingDependency: It is not installed.
        """

    @abstractmethod
    def search(self, recording: Recording, name: str, seed: int, trials: int, observed: Floats) -> Trace:
        """One search by its own code.

        Args:
            recording: The space.
            name: The strategy's name and options without the tuner's name.
            seed: Of everything random in it.
            trials: Schedules that it may measure, each counted once, failures too.
            observed: What measuring each schedule gives in seconds, `inf` where it fails.
        """


def rival_of(strategy: str) -> tuple[Rival, str] | None:
    """The rival that `tuner:strategy` names, and its strategy with options; None where it names none.

    Raises:
        UnknownName: The tuner has no such strategy.
        MissingDependency: The tuner is not installed.
    """
    tuner, _, name = strategy.partition(":")
    module = tuner.replace("-", "_")
    if module not in registry.names(RIVALS):
        return None
    rival = registry.find(RIVALS, module, "rival")
    assert isinstance(rival, Rival)
    if (plain := name.partition(":")[0]) not in rival.names():
        raise UnknownName.of(f"{tuner} strategy", plain, rival.names())
    return rival, name
