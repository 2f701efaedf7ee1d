"""Which prior a search is given: the one that ships with the package, one's own, or none."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from autotune.prior.prior import Prior
from autotune.prior.source import matches
from autotune.recordings.recording import Recording
from autotune.strategies.base import TaskPrior
from search_spaces.errors import BadLog

SHIPPED, NONE = "shipped", "none"
SHIPPED_FILE = Path(__file__).parent / SHIPPED / "prior.zip"
# Kept at hand: priors read, and parts of them with policies of their own.
_LOADED, _TAUGHT = 4, 64


def prior_file(choice: str) -> Path | None:
    """The file that "shipped", "none" or a path means; None for none.

    Raises:
        BadLog: There is no such file.
    """
    if choice == NONE:
        return None
    path = SHIPPED_FILE if choice == SHIPPED else Path(choice)
    if not path.is_file():
        raise BadLog(f"no prior at {path}", "name a file that 'autotune train-prior' wrote, or 'none'")
    return path


def prior_name(choice: str) -> str:
    """`choice` with a hash of the file's content: equal names mean the same prior.

    Raises:
        BadLog: There is no such file.
    """
    path = prior_file(choice)
    return choice if path is None else f"{choice} {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"


def chosen_prior(choice: str) -> Prior | None:
    """The prior that `choice` means, None for "none".

    Raises:
        BadLog: There is no such file, or it is no prior.
    """
    path = prior_file(choice)
    return None if path is None else _load(path, path.stat().st_mtime_ns)


def prior_without_device(choice: str, recording: Recording) -> TaskPrior | None:
    """What would be known of a recording's task had its device never been seen, whatever was tuned on it.

    The policy too is taught anew, by the other devices' tasks of this kind.

    Args:
        choice: "shipped", "none" or a file.
        recording: The task.
    """
    path = prior_file(choice)
    if path is None:
        return None
    changed = path.stat().st_mtime_ns
    others = (e for e in _load(path, changed).experiences if e.device != recording.device)
    related = frozenset(e.name for e in others if matches(recording.space, e))
    if not related:
        return None
    return _of(path, changed, related).for_task(recording.space, recording.context, recording.device)


@lru_cache(maxsize=_LOADED)
def _load(path: Path, _: int) -> Prior:
    return Prior.load(path)


@lru_cache(maxsize=_TAUGHT)
def _of(path: Path, changed: int, names: frozenset[str]) -> Prior:
    return _load(path, changed).only(lambda experience: experience.name in names).taught()
