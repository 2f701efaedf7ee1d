"""A process beside the run that keeps the tracking store up to date, so that the run itself never waits for it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from autotune.environment import with_variables, without_password
from autotune.run_folder import ROOT
from autotune.tracking.store import local_uri

OFF = "none"
EXPERIMENT = "autotune"
# What the process says when the store holds all that the run left; for models and pages made of it no run waits.
UP_TO_DATE = "up to date"
# What the end of a run waits for at most; what is missing then comes with `autotune sync`.
_PATIENCE = 20.0


def store_uri(choice: str | None, folder: Path) -> str | None:
    """Where a run is tracked.

    Args:
        choice: What the user chose: an address, "none", or None for a SQLite store.
        folder: The run's folder. The SQLite store is in it, or beside the runs under `autotune-runs`.

    Returns:
        The address, None for nowhere.
    """
    if choice == OFF:
        return None
    return choice or local_uri(folder.parent if folder.parent.name == ROOT.name else folder)


@contextlib.contextmanager
def following(folder: Path, uri: str | None, experiment: str, notice: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, another process sends the journal in `folder` to the store at `uri`.

    Args:
        folder: The run's folder.
        uri: The store's address, None for no tracking.
        experiment: The experiment's name.
        notice: Takes a line for the user where the store is not up to date in the end.
    """
    if uri is None:
        yield
        return
    words = [sys.executable, "-P", "-m", "autotune", "sync", str(folder), "--follow", "--experiment", experiment]
    # A session of its own: Ctrl-C is for the run, whose end this process still has to send.
    process = subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Not on the command line, which all users of the machine can read: the address may hold a password.
        env=with_variables(AUTOTUNE_MLFLOW=uri, PYTHONPATH=os.pathsep.join(p for p in sys.path if p)),
    )
    try:
        yield
    finally:
        problem = _end(process)
        if problem is not None:
            later = f"autotune sync {folder} --to {without_password(uri)}"
            notice(f"MLflow is not up to date: {problem}; later: {later}")


def _end(process: subprocess.Popen[bytes]) -> str | None:
    """Closes the process's input, which tells it that the run has ended; what went wrong, None where nothing did."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.stdin = None
    said, _, _ = select.select([process.stdout], [], [], _PATIENCE)
    if not said:
        process.kill()
        process.communicate()
        return f"the store did not take all of it within {_PATIENCE:.0f} s"
    if process.stdout.readline().strip() == UP_TO_DATE.encode():
        return None
    _, errors = process.communicate()
    last = errors.decode(errors="replace").strip().rpartition("\n")[2].removeprefix("autotune: ")
    return last or f"it ended with code {process.returncode}"
