"""Registers and spills of a compiled kernel, as each maker's tools write them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from search_spaces import registry

_CUBIN = re.compile(r"REG:(\d+) STACK:(\d+)")
_HSACO = tuple(re.compile(rf"\.{name}:\s+(\d+)") for name in ("vgpr_count", "private_segment_fixed_size"))


def kernel_usage(binary: Path) -> tuple[int | None, int | None]:
    """Registers and bytes of stack of a thread, None where they are not told; Triton's stack holds only spills.

    Args:
        binary: A cubin, or an object for AMD's GPUs beside its assembly, whose metadata tell.
    """
    return _of_hsaco(binary.with_suffix(".amdgcn")) if binary.suffix == ".hsaco" else _of_cubin(binary)


def _of_cubin(cubin: Path) -> tuple[int | None, int | None]:
    tool = registry.optional("triton.knobs", "cuda").nvidia.cuobjdump.path
    done = subprocess.run([tool, "-res-usage", str(cubin)], capture_output=True, text=True, check=False)
    found = _CUBIN.search(done.stdout)
    return (int(found[1]), int(found[2])) if found else (None, None)


def _of_hsaco(assembly: Path) -> tuple[int | None, int | None]:
    text = assembly.read_text()
    registers, stack = (pattern.search(text) for pattern in _HSACO)
    return int(registers[1]) if registers else None, int(stack[1]) if stack else None
