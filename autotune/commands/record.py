"""`autotune record`: measure a space, or a large sample of it, and keep every repeat."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from autotune.display import ProgressLine, duration, output, pretty_json, progress_output
from autotune.measurement import Policy, Status
from autotune.recordings.journaled import families_of, recording_of
from autotune.recordings.native import SUFFIX, write_recording
from autotune.recordings.recording import Recording
from autotune.run_folder import fresh_folder, new_folder
from autotune.site_options import site_options, taken_site
from autotune.task_options import TaskOptions, make_task, on_device, require_device, task_options
from autotune.tune import Outcome, Settings, tune, usable_task
from search_spaces.errors import AutotuneError
from search_spaces.task import Task

# Larger spaces are not measured whole.
_MOST = 200_000


@click.command("record")
@task_options(required=True)
@site_options
@click.option("--sample", type=click.IntRange(min=2), metavar="N", help="Schedules, the default among them.  [500]")
@click.option("--all", "whole", is_flag=True, help="Every schedule of the space.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the sample.")
@click.option("--jobs", type=click.IntRange(min=1), help="Builder processes.  [default: one a core]")
@click.option("--out", type=click.Path(path_type=Path), help="Folder.  [default: one in autotune-runs]")
@click.option("--resume", is_flag=True, help="Go on with the recording in --out.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", is_flag=True, help="No progress.")
def command(
    sample: int | None,
    whole: bool,
    seed: int,
    jobs: int | None,
    out: Path | None,
    resume: bool,
    as_json: bool,
    quiet: bool,
    **named: Any,
) -> int:
    """Measure a space, or a uniform sample of it, and keep every repeat.

    Nothing is given up early and nothing is raced. The same seed draws the same schedules, and for other shapes of
    the operator the same ones as far as they are legal there. Leaves a journal and KERNEL__DEVICE__SHAPE.recording.gz.

    \b
    autotune record --op matmul --target cuda -arch=sm_90 --shape M=4096,N=4096,K=4096 --sample 500 --out FOLDER
    autotune record --op softmax --target llvm --all
    """
    if whole and sample is not None:
        raise AutotuneError("--all and --sample exclude each other", "give one of them")
    if resume and out is None:
        raise AutotuneError("--resume does not say of what", "name the recording's folder with --out")
    site = taken_site(named)
    task = make_task(TaskOptions(**named), measure_roof=True, site=site)
    task = on_device(task, require_device(task, False, site))
    progress = progress_output(quiet)
    task, left_out = usable_task(task)
    for reason in left_out:
        progress.print(f"going on without some sketches: {reason}")
    settings = Settings(
        strategy="exhaustive" if whole else "sample",
        trials=_size(task) if whole else sample or 500,
        seed=seed,
        jobs=jobs or 0,
        site=site,
        policy=Policy(drop_rate=0.0),
        race=False,
    )
    folder = new_folder(task.workload, task.target) if out is None else out if resume else fresh_folder(out)
    cost = task.operator.cost(task.workload)
    with ProgressLine(progress, cost.operations, cost.bytes, task.floor_seconds) as line:
        outcome = tune(task, settings, folder, [line], line.searching)
    recording = recording_of(outcome.log, families_of(task.space))
    path = folder / f"{recording.name}{SUFFIX}"
    write_recording(recording, path)
    _tell(recording, outcome, path, as_json=as_json)
    return outcome.exit_code


def _size(task: Task) -> int:
    """Schedules of the whole space.

    Raises:
        AutotuneError: There are too many.
    """
    size = task.space.size(np.random.default_rng(0))
    if not size.exact or size.legal > _MOST:
        raise AutotuneError(
            f"the space has about {size.legal:,} schedules", f"up to {_MOST:,} are measured; --sample N"
        )
    # The default need not be among them.
    return size.legal + (task.space.why_not(task.default) is not None)


def _tell(recording: Recording, outcome: Outcome, path: Path, *, as_json: bool) -> None:
    ok = sum(s is Status.OK for s in recording.status)
    if as_json:
        data = {
            "recording": str(path),
            "journal": str(outcome.journal),
            "schedules": len(recording.status),
            "ok": ok,
            "optimum_seconds": recording.optimum,
            "new_trials": outcome.new_trials,
            "search_seconds": outcome.search_seconds,
            "build_seconds": outcome.build_seconds,
            "device_seconds": outcome.device_seconds,
            "stopped": outcome.stopped,
        }
        sys.stdout.write(pretty_json(data) + "\n")
        return
    console = output()
    pace = outcome.new_trials / outcome.search_seconds if outcome.search_seconds else 0.0
    lines = [
        f"{len(recording.status)} schedules, {ok} ok, the fastest {duration(recording.optimum)}",
        f"{outcome.new_trials} measured in {outcome.search_seconds:.1f} s, {pace:.1f} a second from start to end",
        f"recording  {path}",
        f"journal    {outcome.journal}",
    ]
    if outcome.stopped:
        lines.append(f"stopped; go on with: --out {path.parent} --resume")
    for line in lines:
        console.print(line, soft_wrap=True)


COMMAND = command
