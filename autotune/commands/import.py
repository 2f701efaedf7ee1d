"""`autotune import`: what other tuners wrote, as warm starts and training data."""  # noqa: N999

from __future__ import annotations

from pathlib import Path

import click

from autotune.display import output, titled
from autotune.importing import read_foreign, write_imported
from autotune.tuned_log import FILE as TUNED_LOG
from autotune.warm_start import FILE


@click.command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="The folder to write; a new one."
)
@click.option("--device", default="", metavar="NAME", help="What was measured on, where a file does not tell.")
def command(files: tuple[Path, ...], out: Path, device: str) -> None:
    """Import files of other tuners; what each is, is told by what is in it.

    Nothing imported counts as verified: it is where a search starts and what a prior learns from, until it was measured
    here.

    \b
    MetaSchedule database    its folder; where a record is of an operator and a sketch here, an entry too; needs TVM
    Kernel Tuner cache, T4   recordings
    NAME.autotune.json       of Triton's cache: recordings; --device says what it was measured on
    vLLM's, SGLang's files   of fused MoE and block fp8: warm starts only, as they hold no times

    \b
    autotune import E=8,N=7168,device_name=NVIDIA_H200.json matmul.autotune.json --out imported
    autotune run --op matmul --target cuda -arch=sm_90 --warm-start imported
    autotune train-prior imported autotune-runs --out my.prior
    autotune verify imported/tuned-log.json --out verified.json
    """
    sources = [read_foreign(path, device) for path in files]
    written = write_imported(out, sources)
    console = output()
    for source in sources:
        content = source.content
        parts = {
            "entries": len(content.entries),
            "measured configurations": sum(len(r.status) for r in content.recordings),
            "warm starts": len(content.proposals),
        }
        said = ", ".join(f"{count} {what}" for what, count in parts.items() if count)
        console.print(titled("imported", f"  {source.path}, {source.summary}: {said}"), soft_wrap=True)
        for reason in content.left_out:
            console.print(titled("left out", f"  {reason}"), soft_wrap=True)
    console.print(f"{len(written)} files in {out}, none of it verified here", soft_wrap=True)
    if out / FILE in written:
        console.print(f"start from it with 'autotune run --warm-start {out}'", soft_wrap=True)
    if out / TUNED_LOG in written:
        console.print(f"verify entries with 'autotune verify {out / TUNED_LOG} --out FILE'", soft_wrap=True)


COMMAND = command
