"""What was there when a run was made: package versions, interpreter, system. Read in this one place."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata

# Distributions whose version can change a measurement or a search.
DISTRIBUTIONS = (
    "kernel-autotune",
    "apache-tvm",
    "apache-tvm-ffi",
    "triton",
    "torch",
    "xgboost",
    "xgboost-cpu",
    "scikit-learn",
    "numpy",
    "pandas",
    "mlflow",
    "mlflow-skinny",
    "nvidia-ml-py",
)


@dataclass(frozen=True)
class Environment:
    """The software of one run.

    Attributes:
        versions: Distribution -> version, those that are installed.
        python: Interpreter version.
        system: Operating system and machine.
    """

    versions: Mapping[str, str]
    python: str
    system: str


def read_environment() -> Environment:
    """The software of this process; imports none of it."""
    versions = {}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Environment(versions, platform.python_version(), f"{platform.platform()} {platform.machine()}")


def set_defaults_for_children() -> None:
    """Environment variables that child processes need from their start.

    TVM's FFI imports torch, where it is installed, only to pass torch tensors faster: seconds for nothing in a builder.
    """
    os.environ.setdefault("TVM_FFI_DISABLE_TORCH_C_DLPACK", "1")
