"""What was there when a run was made: package versions, interpreter, system. Read in this one place."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Iterable, Mapping
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
    system = f"{platform.platform()} {platform.machine()}"
    return Environment(versions_of(DISTRIBUTIONS), platform.python_version(), system, tools or {})


def versions_of(distributions: Iterable[str]) -> dict[str, str]:
    """Distribution -> version, of those that are installed: a checkout on the path is not."""
    found = {}
    for name in distributions:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def lock_folder() -> Path:
    """Where the locks of devices are: AUTOTUNE_LOCK_DIR, or a folder of this user's own in the temporary folder."""
    given = os.environ.get("AUTOTUNE_LOCK_DIR")
    return Path(given) if given else Path(tempfile.gettempdir()) / f"autotune-locks-{os.getuid()}"


def cuda_folder() -> Path:
    """Where the CUDA toolkit is: CUDA_HOME, or the place that its installer chooses."""
    return Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda")


def with_variables(**variables: str) -> Mapping[str, str]:
    """This process's variables, and some more for a child."""
    return {**os.environ, **variables}


def tracking_uri() -> str | None:
    """The MLflow store that the user set: MLFLOW_TRACKING_URI, or AUTOTUNE_MLFLOW before it; None where neither is."""
    return os.environ.get("AUTOTUNE_MLFLOW") or os.environ.get("MLFLOW_TRACKING_URI") or None


def modest_mlflow() -> None:
    """Lets MLflow give up soon on a store that does not answer, and report to nobody; call before it is imported."""
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "20")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")


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
    # OpenMP's threads, which torch and Inductor start, spin otherwise: on few cores that made others wait milliseconds.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
