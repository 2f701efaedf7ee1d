"""Where kernels with roles for groups of warps run: wgmma, and a Triton that has Gluon for it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from search_spaces.task import Task

ARCH = "sm_90"
# The file of an installed Triton that says whether it has Gluon for Hopper.
GLUON = "experimental/gluon/nvidia/hopper.py"


def needs_wgmma(task: Task) -> str | None:
    """Why a sketch written in Gluon for Hopper does not apply, None where it may."""
    if task.hardware.limits.arch != ARCH:
        return f"{task.target.arch} has no wgmma: only {ARCH} does"
    triton = importlib.util.find_spec("triton")
    if triton is not None and not (Path(str(triton.origin)).parent / GLUON).is_file():
        return "the Triton installed has no Gluon for Hopper, which came with 3.6"
    return None
