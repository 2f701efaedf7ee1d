"""SGLang: configuration files of its block-fp8 kernel."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

from autotune.engine_files import CONFIGS, EngineExporter
from autotune.recall import Winner
from search_spaces.sketches.triton.block_fp8_matmul_sglang import SKETCH as BLOCK_FP8


class SglangExporter(EngineExporter):
    """As `w8a8_block_fp8_matmul_triton` asks for them; the names have a blank where vLLM's have none."""

    summary = "configuration files of SGLang's block-fp8 kernel, from tuning that kernel"
    packages = ("sglang", "triton")
    sketches = (BLOCK_FP8,)
    separator = ", "

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the files must be, and when they are not read."""
        place = Path("sglang", BLOCK_FP8.file).parent / CONFIGS
        return (
            f"SGLang looks for block-fp8 files in its own package only: copy {CONFIGS}/* to site-packages/{place}.",
            "It takes the configuration of the nearest number of rows, and none at all under torch.compile.",
        )

    def device_name(self, winner: Winner) -> str:
        """Blanks become underscores."""
        return winner.entry.device.name.replace(" ", "_")

    def names(self, winner: Winner) -> Mapping[str, Any]:
        """CUDA, outside of torch.compile."""
        return {
            "get_device_name": lambda: winner.entry.device.name,
            "log_info_on_rank0": lambda *_: None,
            "torch": SimpleNamespace(_dynamo=SimpleNamespace(is_compiling=lambda: False)),
            "_is_cuda": True,
            **{"Dict": dict, "Optional": Optional},
        }


EXPORTER = SglangExporter()
