"""`autotune train-prior`: what recordings and journals teach, in one file that searches can lean on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec

from autotune.clock import now
from autotune.display import output, pretty_json, progress_output
from autotune.environment import versions_of
from autotune.journal import FILE, load_runs
from autotune.prior.card import card_of, card_text
from autotune.prior.prior import Prior
from autotune.recordings.bounded import faults_as_bad_log, write_whole
from autotune.recordings.finding import find_recordings, read_recording
from autotune.recordings.journaled import recording_of
from autotune.recordings.native import SUFFIX
from autotune.recordings.recording import Recording
from search_spaces.errors import NothingValid


@click.command("train-prior")
@click.argument("places", nargs=-1, required=True, metavar="RECORDINGS-OR-RUNS...")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the policy's training.")
@click.option(
    "--results",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For the card: JSON that experiments/prior_leave_one_out.py wrote.",
)
@click.option("--quiet", is_flag=True, help="No progress.")
def command(places: tuple[str, ...], out: Path, seed: int, results: Path | None, quiet: bool) -> None:
    """Train a prior from recordings, journals and folders of them.

    Beside OUT it writes a card, in Markdown and JSON, that says what the prior was trained on.

    \b
    autotune train-prior autotune-runs --out my.prior
    autotune run --op matmul --target llvm --prior my.prior
    """
    progress = progress_output(quiet)
    recordings = []
    for recording in _recordings(places, progress.print):
        progress.print(f"{recording.name}: {len(recording.status)} schedules")
        recordings.append(recording)
    if not recordings:
        raise NothingValid(f"nothing to learn from in {', '.join(places)}", "name recordings, runs or folders of them")
    about = {
        "trained": now().date().isoformat(),
        **{f"with {name}": version for name, version in versions_of(("kernel-autotune", "numpy")).items()},
    }
    prior = Prior.train(recordings, seed, about)
    prior.save(out)
    card = card_of(prior, out.stat().st_size)
    known = _results(results)
    write_whole(_beside(out, "json"), pretty_json({**card, "results": known}).encode() + b"\n")
    write_whole(_beside(out, "md"), card_text(card, known).encode())
    output().print(f"{len(recordings)} tasks, {out.stat().st_size / 1e6:.2f} MB  {out}", soft_wrap=True)


def _beside(out: Path, ending: str) -> Path:
    return out.with_name(f"{out.stem}.card.{ending}")


def _results(path: Path | None) -> dict[str, object] | None:
    if path is None:
        return None
    with faults_as_bad_log(path, "result of experiments/prior_leave_one_out.py"):
        return msgspec.json.decode(path.read_bytes(), type=dict[str, object])


def _recordings(places: tuple[str, ...], say: Callable[[str], object]) -> Iterator[Recording]:
    """All that is recorded there; a task of a journal of which nothing was verified teaches nothing."""
    for place in places:
        journals = sorted(Path(place).rglob(FILE)) if Path(place).is_dir() else []
        for log in (log for journal in journals for log in load_runs(journal)):
            if log.best is None:
                say(f"{log.runs[0].task.workload}: nothing was verified, left out")
            else:
                yield recording_of(log)
        # A folder of runs alone holds no other recording.
        if not journals or any(Path(place).rglob(f"*{SUFFIX}")):
            yield from map(read_recording, find_recordings([place]))


COMMAND = command
