"""vLLM: configuration files of its Triton kernels for block-fp8 weights and for mixtures of experts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from autotune.engine_files import CONFIGS, BlockFp8File, EngineExporter, FusedMoeFile
from autotune.recall import Winner
from search_spaces.sketches.triton.block_fp8_matmul_vllm import SKETCH as BLOCK_FP8
from search_spaces.sketches.triton.fused_moe_vllm import SKETCH as FUSED_MOE

_NEAREST = "It takes the configuration of the nearest number of rows: tune those that you serve."
# The folder of files for mixtures of experts.
_MOE = "fused_moe"


class _BlockFp8(BlockFp8File):
    """As `w8a8_triton_block_scaled_mm` asks for them."""

    sketch = BLOCK_FP8
    reader = BLOCK_FP8.file
    separator = ","

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the files must be."""
        place = Path("vllm", self.reader).parent / CONFIGS
        return (
            f"vLLM looks for block-fp8 files in its own package only: copy {CONFIGS}/* to site-packages/{place}.",
            _NEAREST,
        )

    def device_name(self, winner: Winner) -> str:
        """Blanks and slashes become underscores."""
        return _file_name(winner)

    def names(self, winner: Winner, folder: Path) -> Mapping[str, Any]:
        """The device's name."""
        del folder
        return {"get_device_name_as_file_name": lambda: _file_name(winner)}


class _FusedMoe(FusedMoeFile):
    """As `try_get_optimal_moe_config` asks for them, in the folder that VLLM_TUNED_CONFIG_FOLDER names."""

    sketch = FUSED_MOE
    reader = FUSED_MOE.file

    @property
    def notes(self) -> tuple[str, ...]:
        """How vLLM finds them, and what a name does not tell."""
        return (
            f"For mixtures of experts set VLLM_TUNED_CONFIG_FOLDER to this folder's {CONFIGS}/{_MOE}.",
            "vLLM takes such a file for any model with as many experts of that width, whatever K and T were tuned.",
            _NEAREST,
        )

    def device_name(self, winner: Winner) -> str:
        """All of the H200's family have one name."""
        named = _file_name(winner)
        return "NVIDIA_H200" if "H200" in named.split("_") else named

    def place(self, winner: Winner) -> Path:
        """In a folder of their own, as vLLM is given one for these alone."""
        return Path(CONFIGS, _MOE, self.name(winner))

    def names(self, winner: Winner, folder: Path) -> Mapping[str, Any]:
        """As with the environment variable set."""
        place = str(folder.resolve() / CONFIGS / _MOE)
        return {
            "envs": SimpleNamespace(VLLM_BATCH_INVARIANT=False, VLLM_TUNED_CONFIG_FOLDER=place),
            "get_device_name_as_file_name": lambda: _file_name(winner),
        }


def _file_name(winner: Winner) -> str:
    return re.sub(r"[\s/]+", "_", winner.entry.device.name)


class VllmExporter(EngineExporter):
    """Files for the kernels that were tuned."""

    summary = "configuration files of vLLM's block-fp8 and fused-MoE kernels, from tuning those kernels"
    packages = ("vllm", "triton")
    files = (_BlockFp8(), _FusedMoe())


EXPORTER = VllmExporter()
