"""`autotune convert`: recordings from one format to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from autotune.display import output
from autotune.recordings.finding import read_recording
from autotune.recordings.kernel_tuner import write_kernel_tuner
from autotune.recordings.native import write_recording
from autotune.recordings.recording import Recording
from autotune.recordings.t4 import write_t4
from search_spaces.errors import AutotuneError

FORMATS: Mapping[str, Callable[[Recording, Path], None]] = {
    "recording": write_recording,
    "kernel-tuner": write_kernel_tuner,
    "t4": write_t4,
}


@click.command("convert")
@click.argument("source", metavar="IN", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=click.Choice(list(FORMATS)), required=True, help="Format of the file to write.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True, help="The file to write.")
def command(source: Path, form: str, out: Path) -> None:
    """Convert a recording, a run's journal, a Kernel Tuner cache, a T4 file or a replay table.

    What IN is, is told by what is in it. A name that ends in .gz is packed.

    \b
    recording      gzip of JSON lines, kernel__device__shape.recording.gz: every other format loses something
    kernel-tuner   cache file, as for tune_kernel(..., simulation_mode=True); of failures only whether they compiled
    t4             results format 1.0.0 of the auto-tuning community; no context, software or provenance

    \b
    autotune convert autotune-runs/FOLDER --format t4 --out matmul__h200.T4.json.gz
    autotune convert A100.json.gz --format recording --out convolution__a100.recording.gz
    """
    if out.exists() and out.samefile(source):
        raise AutotuneError(f"{out} is what would be read", "choose another --out")
    recording = read_recording(source)
    FORMATS[form](recording, out)
    ok = sum(map(float("inf").__gt__, recording.seconds.tolist()))
    output().print(
        f"{recording.name}: {len(recording.status)} schedules, {ok} ok, on {recording.device}  {out}", soft_wrap=True
    )


COMMAND = command
