"""`autotune export`: the best schedules of tuned logs in the format of a compiler or runtime."""

from __future__ import annotations

from pathlib import Path

import click

from autotune.display import output, titled
from autotune.exporting import SIDE_FILE, export, format_names
from autotune.tuned_log import entries_of


@click.command("export")
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(format_names()), required=True, help="What the folder is for.")
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write, or to renew."
)
@click.option(
    "--op", "operators", multiple=True, help="File or module of an operator that may be imported; repeatable."
)
def command(logs: tuple[Path, ...], form: str, out: Path, operators: tuple[str, ...]) -> None:
    """Export the best schedules of runs, journals or tuned logs.

    Whatever a format is for opens the result before the folder is put in place; where that is not installed, nothing
    is written. Where every entry is from is in provenance.json, beside the format's own files.

    \b
    tvm            MetaSchedule databases, for Relax's pipelines and compile_tir
    triton         configurations, for any @triton.autotune kernel by way of autotune.reuse.triton
    inductor       lookup table of torch.compile's matrix products
    vllm           configuration files of vLLM's kernels, from tuning those kernels
    sglang         configuration files of SGLang's kernels, from tuning those kernels
    artifact       compiled kernels: a cubin with launch data, or a shared object
    c-header       constants a device, for CUDA C++ at compile time
    wisdom         Kernel Launcher's files, for CUDA C++ at run time; read again by its rules, not by itself
    kernel-tuner   results that kernel_tuner.integration reads, the best of each problem size

    \b
    autotune export autotune-runs/FOLDER --format tvm --out exported
    """
    made = export([e for log in logs for e in entries_of(log)], form, out, operators)
    console = output()
    for entry in made.entries:
        console.print(titled("exported", f"  {entry.task.workload} for {entry.task.target} on {entry.device.name}"))
    for reason in made.refused:
        console.print(titled("left out", f"  {reason}"), soft_wrap=True)
    for note in made.notes:
        console.print(note, soft_wrap=True)
    console.print(f"{len(made.files)} files in {out}, where they are from in {out / SIDE_FILE}", soft_wrap=True)


COMMAND = command
