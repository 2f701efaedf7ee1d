"""SGLang: configuration files of its block-fp8 kernel."""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

from autotune.engine_files import EngineExporter
from autotune.recall import Winner
from search_spaces.installed_text import function_of
from search_spaces.operators.block_fp8_matmul import BLOCK
from search_spaces.sketches.triton.block_fp8_matmul_sglang import SKETCH as BLOCK_FP8

# In the folder of the file that reads it.
_CONFIGS = "configs"


class SglangExporter(EngineExporter):
    """As `w8a8_block_fp8_matmul_triton` asks for them; the names have a blank where vLLM's have none."""

    summary = "configuration files of SGLang's block-fp8 kernel, from tuning that kernel"
    packages = ("sglang", "triton")
    sketches = (BLOCK_FP8,)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the files must be, and when they are not read."""
        place = Path("sglang", BLOCK_FP8.file).parent / _CONFIGS
        return (
            f"SGLang looks for block-fp8 files in its own package only: copy {_CONFIGS}/* to site-packages/{place}.",
            "It takes the configuration of the nearest number of rows, and none at all under torch.compile.",
        )

    def place(self, winner: Winner) -> Path:
        """The weight's shape, the device and the block are in the name."""
        n, k = winner.task.workload["N"], winner.task.workload["K"]
        named = f"N={n},K={k},device_name={_device(winner)},dtype=fp8_w8a8,block_shape=[{BLOCK}, {BLOCK}].json"
        return Path(_CONFIGS, named)

    def looked_up(self, winner: Winner, folder: Path) -> Mapping[int, Mapping[str, Any]] | None:
        """`get_w8a8_block_fp8_configs` of the installed SGLang on CUDA, with the export in its package's place."""
        names = {
            "__file__": str(folder.resolve() / "fp8_kernel.py"),
            "get_device_name": lambda: winner.entry.device.name,
            "log_info_on_rank0": lambda *_: None,
            "logger": logging.getLogger(__name__),
            "torch": SimpleNamespace(_dynamo=SimpleNamespace(is_compiling=lambda: False)),
            "_is_cuda": True,
            **{"functools": functools, "json": json, "os": os},
            **{"Any": Any, "Dict": dict, "Optional": Optional},
        }
        function = function_of(BLOCK_FP8.package, BLOCK_FP8.file, ("get_w8a8_block_fp8_configs",), names)
        found: Mapping[int, Mapping[str, Any]] | None = function(
            winner.task.workload["N"], winner.task.workload["K"], BLOCK, BLOCK
        )
        return found


def _device(winner: Winner) -> str:
    return winner.entry.device.name.replace(" ", "_")


EXPORTER = SglangExporter()
