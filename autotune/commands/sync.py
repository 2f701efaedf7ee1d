"""`autotune sync`: bring an MLflow store up to date with runs."""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import click

from autotune.display import output, progress_output
from autotune.environment import tracking_uri, without_password
from autotune.journal import journal_path
from autotune.tracking.follower import EXPERIMENT, UP_TO_DATE, store_uri
from autotune.tracking.store import Store
from autotune.tracking.sync import follow, sync_all
from search_spaces.errors import AutotuneError

_TURN_SECONDS = 5.0
_LOWEST_PRIORITY = 19
_SESSION_PRIORITY = Path("/proc/self/autogroup")


@click.command("sync")
@click.argument("paths", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--to", metavar="URI", help="The store.  [default: MLFLOW_TRACKING_URI, else mlflow.db beside the run]")
@click.option("--experiment", default=EXPERIMENT, show_default=True, help="The experiment's name in MLflow.")
@click.option("--follow", "following", is_flag=True, help="Go on while the run does, until standard input is closed.")
def command(paths: tuple[Path, ...], to: str | None, experiment: str, following: bool) -> None:
    """Bring an MLflow store up to date with runs: what it lacks is sent, and nothing twice.

    \b
    autotune sync autotune-runs/*
    autotune sync autotune-runs/* --to http://localhost:5000
    """
    uri = store_uri(to or tracking_uri(), journal_path(paths[0]).parent)
    if uri is None:
        raise AutotuneError("no MLflow store to send to", "name one with --to")
    if following:
        if not _weigh_session(_LOWEST_PRIORITY):
            os.nice(_LOWEST_PRIORITY)
        follow(paths[0], partial(Store, uri, experiment), _run_ended, _say_done)
        return
    for path, sent in sync_all(paths, Store(uri, experiment), progress_output(quiet=False).print).items():
        output().print(f"{path}: {sent} records sent to {without_password(uri)}", soft_wrap=True)


def _weigh_session(priority: int) -> bool:
    """Priority of all that this process's session does, where Linux shares processors out by session first.

    There the process's own priority counts within its session alone, and the run is of another.
    """
    try:
        _SESSION_PRIORITY.write_text(str(priority))
    except OSError:
        return False
    return True


def _say_done() -> None:
    """Tells the run that it need wait no longer; it may have gone."""
    with suppress(OSError):
        sys.stdout.write(f"{UP_TO_DATE}\n")
        sys.stdout.flush()


def _run_ended() -> bool:
    """Waits a turn, or until standard input is closed, which the run does in the end; so does its death."""
    readable, _, _ = select.select([sys.stdin], [], [], _TURN_SECONDS)
    ended = bool(readable) and not sys.stdin.read(1)
    if ended:
        # From here on it is the run that waits.
        _weigh_session(0)
    return ended


COMMAND = command
