"""What was there when a run was made: package versions, interpreter, system. Read in this one place."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

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
        tools: Compilers and runtimes that are no distributions -> version.
    """

    versions: Mapping[str, str]
    python: str
    system: str
    tools: Mapping[str, str] = field(default_factory=dict)


def read_environment(tools: Mapping[str, str] | None = None) -> Environment:
    """The software of this process; imports none of it."""
    versions = {}
    for name in DISTRIBUTIONS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return Environment(versions, platform.python_version(), f"{platform.platform()} {platform.machine()}", tools or {})


def lock_folder() -> Path:
    """Where the locks of devices are: AUTOTUNE_LOCK_DIR, or a folder of this user's own in the temporary folder."""
    given = os.environ.get("AUTOTUNE_LOCK_DIR")
    return Path(given) if given else Path(tempfile.gettempdir()) / f"autotune-locks-{os.getuid()}"


def calm_thread_pools() -> None:
    """Keeps the idle threads of one library from taking the cores from what is measured next in the same process.

    Each library reads its variables once, when its pool starts: call this before, or in the parent process. What the
    user has set is left alone.
    """
    os.environ.setdefault("TVM_NUM_THREADS", str(len(os.sched_getaffinity(0))))
    # Pinning would stay on this thread, and so on every process and thread that it starts.
    os.environ.setdefault("TVM_BIND_THREADS", "0")
    os.environ.setdefault("TVM_THREAD_POOL_SPIN_COUNT", "1000")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")
