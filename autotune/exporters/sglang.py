"""SGLang: configuration files of its Triton kernels for block-fp8 weights and for mixtures of experts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from autotune.engine_files import CONFIGS, BlockFp8File, EngineExporter, FusedMoeFile
from autotune.recall import Winner
from search_spaces.sketches.triton.block_fp8_matmul_sglang import SKETCH as BLOCK_FP8
from search_spaces.sketches.triton.fused_moe_sglang import SKETCH as FUSED_MOE

_READER = "srt/layers/moe/moe_runner/triton_utils/fused_moe_triton_config.py"
_NEAREST = "It takes the configuration of the nearest number of rows"


class _BlockFp8(BlockFp8File):
    """As `w8a8_block_fp8_matmul_triton` asks for them; the names have a blank where vLLM's have none."""

    sketch = BLOCK_FP8
    reader = BLOCK_FP8.file
    separator = ", "

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the files must be, and when they are not read."""
        place = Path("sglang", self.reader).parent / CONFIGS
        return (
            f"SGLang looks for block-fp8 files in its own package only: copy {CONFIGS}/N=* to site-packages/{place}.",
            f"{_NEAREST}, and none at all of block-fp8 under torch.compile.",
        )

    def device_name(self, winner: Winner) -> str:
        """Blanks become underscores."""
        return _file_name(winner)

    def names(self, winner: Winner, folder: Path) -> Mapping[str, Any]:
        """CUDA, outside of torch.compile."""
        del folder
        return {
            "get_device_name": lambda: winner.entry.device.name,
            "log_info_on_rank0": lambda *_: None,
            "torch": SimpleNamespace(_dynamo=SimpleNamespace(is_compiling=lambda: False)),
            "_is_cuda": True,
        }


class _FusedMoe(FusedMoeFile):
    """As `try_get_optimal_moe_config` asks for them, in the folder that SGLANG_MOE_CONFIG_DIR names."""

    sketch = FUSED_MOE
    reader = _READER

    @property
    def notes(self) -> tuple[str, ...]:
        """How SGLang finds them, what a name does not tell, and how it launches the kernel otherwise."""
        return (
            f"For mixtures of experts set SGLANG_MOE_CONFIG_DIR to the folder that holds {CONFIGS}.",
            "SGLang takes such a file for any model with as many experts of that width, whatever K and T were tuned.",
            "It starts the kernel before the one in front has ended where the device can (PDL); it was tuned without.",
            f"{_NEAREST}: tune those that you serve.",
        )

    def device_name(self, winner: Winner) -> str:
        """Blanks become underscores."""
        return _file_name(winner)

    def place(self, winner: Winner) -> Path:
        """Under the version of Triton that it was tuned with."""
        return Path(CONFIGS, f"triton_{_triton(winner).replace('.', '_')}", self.name(winner))

    def names(self, winner: Winner, folder: Path) -> Mapping[str, Any]:
        """As with the environment variable set."""
        environ = {"SGLANG_MOE_CONFIG_DIR": str(folder.resolve())}
        inference = SimpleNamespace(deterministic=SimpleNamespace(enable_deterministic_inference=False))
        return {
            "os": SimpleNamespace(environ=environ, path=os.path, listdir=os.listdir),
            "triton": SimpleNamespace(__version__=_triton(winner)),
            "get_exec": lambda: inference,
            "get_device_name": lambda: winner.entry.device.name,
        }


def _triton(winner: Winner) -> str:
    """The version that it was tuned with."""
    return winner.entry.environment.versions["triton"]


def _file_name(winner: Winner) -> str:
    return winner.entry.device.name.replace(" ", "_")


class SglangExporter(EngineExporter):
    """Files for the kernels that were tuned."""

    summary = "configuration files of SGLang's block-fp8 and fused-MoE kernels, from tuning those kernels"
    packages = ("sglang", "triton")
    files = (_BlockFp8(), _FusedMoe())


EXPORTER = SglangExporter()
