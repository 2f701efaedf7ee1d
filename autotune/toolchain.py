"""Versions of compilers and runtimes that no package's metadata tells: they change what a schedule becomes."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from autotune.builders import find_generator
from search_spaces import registry
from search_spaces.task import Task

_SECONDS = 10.0
_RELEASE = re.compile(r"\bV(\d[\d.]*)")
_CUDA_OF_TORCH = re.compile(r"^cuda\b.*=\s*'([\d.]+)'", re.MULTILINE)


def tool_versions(task: Task) -> Mapping[str, str]:
    """Tool -> version, those that build and run the schedules of `task` and are found here."""
    found: dict[str, str] = {}
    for name in sorted({sketch.generator for sketch in task.sketches.values()}):
        found |= find_generator(name).versions()
    found |= _cuda_tools() if task.target.kind == "cuda" else _llvm()
    return {name: version for name, version in sorted(found.items()) if version}


def _llvm() -> dict[str, str]:
    """The LLVM inside TVM."""
    if not registry.available("tvm"):
        return {}
    return {"llvm": str(registry.optional("tvm", "tvm").get_global_func("target.llvm_version_major")())}


def _cuda_tools() -> dict[str, str]:
    """Triton's ptxas, nvcc on PATH, and the CUDA runtime that torch was built for; imports none of them."""
    ptxas = _inside("triton", "backends/nvidia/bin/ptxas")
    nvcc = shutil.which("nvcc")
    version_file = _inside("torch", "version.py")
    runtime = _CUDA_OF_TORCH.search(version_file.read_text()) if version_file is not None else None
    return {
        "ptxas": _release(ptxas) if ptxas is not None else "",
        "nvcc": _release(Path(nvcc)) if nvcc is not None else "",
        "cuda runtime": runtime.group(1) if runtime is not None else "",
    }


def _inside(package: str, path: str) -> Path | None:
    """A file of an installed package, None where either is missing."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / path
    return file if file.is_file() else None


def _release(program: Path) -> str:
    """What `program --version` says, "" where it cannot be run."""
    try:
        done = subprocess.run(
            [str(program), "--version"], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    release = _RELEASE.search(done.stdout)
    return release.group(1) if release is not None else ""
