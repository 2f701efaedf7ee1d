"""Triton: configurations as JSON, for any `@triton.autotune` kernel by way of `autotune.reuse.triton`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import cast

import msgspec

from autotune.exporters.base import Exporter, ExportFault
from autotune.generators.triton import GENERATOR
from autotune.recall import Winner
from autotune.reuse.triton import FILE, SCHEMA, ConfigData, ConfigFile, TunedConfig, read_configs
from search_spaces import registry
from search_spaces.sketches.triton.base import ScalarArgument, TritonSketch

_NOTE = (
    "autotune.reuse.triton.TunedConfigs hands them to @triton.autotune; another kernel than the tuned one may differ."
)


class TritonExporter(Exporter):
    """One configuration a winner: the kernel's constants but for the shape, warps, stages and registers."""

    summary = "configurations for @triton.autotune kernels, used without a benchmark"
    packages = ("triton",)

    def missing(self) -> str | None:
        """Triton itself."""
        return GENERATOR.missing()

    def why_not(self, winner: Winner) -> str | None:
        """A schedule of another generator has no configuration; a cluster made by rewriting PTX is none of Triton's."""
        sketch = winner.task.sketch_of(winner.schedule)
        if not isinstance(sketch, TritonSketch):
            return f"{sketch.name} is made by {sketch.generator}, not by Triton"
        if sketch.launch(winner.task, winner.schedule).cluster > 1:
            return "triton.Config cannot say its clusters of blocks"
        if len(sketch.launches(winner.task, winner.schedule)) > 1:
            return "it is several kernels one after the other, and a triton.Config is one kernel's"
        return None

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """One file."""
        made = ConfigFile(SCHEMA, metadata.version("triton"), tuple(map(tuned_config, winners)))
        (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Reads it as its users do, and has Triton make every configuration."""
        config = registry.optional("triton", "cuda").Config
        found = read_configs(folder / FILE)
        for winner, tuned in zip(winners, found.configs, strict=True):
            made = config(**msgspec.structs.asdict(tuned.config)).all_kwargs()
            launch = cast(TritonSketch, winner.task.sketch_of(winner.schedule)).launch(winner.task, winner.schedule)
            if made["num_warps"] != launch.num_warps or any(
                made[name] != value for name, value in launch.constants.items() if name in made
            ):
                raise ExportFault(f"Triton makes another configuration of {winner}")
        return (_NOTE,)


def tuned_config(winner: Winner) -> TunedConfig:
    """The configuration of a winner, with the scalars that it is launched with as keywords of their own."""
    sketch = cast(TritonSketch, winner.task.sketch_of(winner.schedule))
    launch, data = sketch.launch(winner.task, winner.schedule), winner.task.workload
    axes = dict(data.axes)
    scalars = {name: a.value for name, a in launch.arguments.items() if isinstance(a, ScalarArgument)}
    given = {name: value for name, value in launch.constants.items() if name not in axes}
    # What an engine's kernel has beside them, types and what is not passed, is no part of a configuration.
    constants = {name: value for name, value in given.items() if isinstance(value, bool | int | float | str)}
    return TunedConfig(
        operator=data.operator,
        axes=axes,
        dtype=data.dtype,
        device=winner.entry.device.name,
        arch=winner.entry.device.arch,
        kernel=sketch.kernel,
        source=sketch.source_hash,
        config=ConfigData({**constants, **scalars}, launch.num_warps, launch.num_stages, 1, launch.maxnreg),
        grid=launch.grid,
        seconds=winner.entry.seconds,
    )


EXPORTER = TritonExporter()
