"""vLLM: configuration files of its block-fp8 kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.engine_files import CONFIGS, EngineExporter
from autotune.recall import Winner
from search_spaces.sketches.triton.block_fp8_matmul_vllm import SKETCH as BLOCK_FP8


class VllmExporter(EngineExporter):
    """As `w8a8_triton_block_scaled_mm` asks for them."""

    summary = "configuration files of vLLM's block-fp8 kernel, from tuning that kernel"
    packages = ("vllm", "triton")
    sketches = (BLOCK_FP8,)
    separator = ","

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the files must be."""
        place = Path("vllm", BLOCK_FP8.file).parent / CONFIGS
        return (
            f"vLLM looks for block-fp8 files in its own package only: copy {CONFIGS}/* to site-packages/{place}.",
            "It takes the configuration of the nearest number of rows: tune those that you serve.",
        )

    def device_name(self, winner: Winner) -> str:
        """Blanks and slashes become underscores."""
        return re.sub(r"[\s/]+", "_", winner.entry.device.name)

    def names(self, winner: Winner) -> Mapping[str, Any]:
        """The device's name."""
        return {"get_device_name_as_file_name": lambda: self.device_name(winner)}


EXPORTER = VllmExporter()
