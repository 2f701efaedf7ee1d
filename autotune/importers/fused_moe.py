"""Configuration files of vLLM's and SGLang's fused mixture-of-experts and block-fp8 kernels; they hold no times."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from autotune.importers.base import Imported, Importer
from autotune.warm_start import MOST_OF_A_FILE, Proposal, our_names

_VERSION = "triton_version"
_EXTENT = re.compile(r"[0-9]{1,9}")
_FIELD = re.compile(r"(\w+)=(\[[^\]]*\]|[^,]*)")
# What the kernels multiply, by the word in the file's name; of the others two operands have two dtypes.
_DTYPES = {"fp8_w8a8": "float8_e4m3fn", "int8_w8a8": "int8"}
# Rows that a file tells apart; more than any engine ships.
_MOST_ROWS = 4096


class FusedMoeImporter(Importer):
    """Warm starts only: the files say which configuration was best for each number of rows, not how fast it was."""

    summary = "fused-MoE or block-fp8 file of vLLM or SGLang"

    def takes(self, path: Path, data: Any) -> bool:
        """Every key but the version is a number of rows, and every value has tiles."""
        if not isinstance(data, dict):
            return False
        rows = [(key, value) for key, value in data.items() if key != _VERSION]
        return bool(rows) and all(
            _EXTENT.fullmatch(key) and isinstance(value, dict) and "BLOCK_SIZE_M" in value for key, value in rows
        )

    def read(self, path: Path, data: Any, device: str) -> Imported:
        """Problem and device are in the file's name."""
        rows = {key: value for key, value in data.items() if key != _VERSION}
        if len(rows) > _MOST_ROWS:
            raise ValueError(f"it has more than {_MOST_ROWS} numbers of rows")
        named = dict(_FIELD.findall(path.name.removesuffix(".json")))
        extents = {axis: int(named[axis]) for axis in "ENK" if _EXTENT.fullmatch(named.get(axis, ""))}
        dtype = _DTYPES.get(named.get("dtype", ""), "")
        on = named.get("device_name", "").replace("_", " ") or device
        made = [
            Proposal(
                our_names(msgspec.convert(row, dict[str, int | str | bool])),
                f"{self.summary} {path.name}",
                "fused_moe" if "E" in extents else "block_fp8_matmul",
                on,
                {"M": int(key), **extents},
                dtype,
            )
            for key, row in rows.items()
        ]
        left = len(made) - MOST_OF_A_FILE
        reason = f"{left} of {len(made)} numbers of rows: no more than {MOST_OF_A_FILE} are kept"
        return Imported(tuple(made[:MOST_OF_A_FILE]), left_out=(reason,) if left > 0 else ())


IMPORTER = FusedMoeImporter()
