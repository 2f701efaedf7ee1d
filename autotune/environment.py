"""What was there when a run was made: package versions, interpreter, system. Read in this one place."""

from __future__ import annotations

import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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

# Names of variables that hold a secret, or lead to who holds it.
_SECRET_NAME = re.compile(
    r"(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY|CREDENTIAL|CONNECTION_STRING)S?(_|$)"
    r"|(^|_)(KEY|KEYS|PAT|AUTH|COOKIE)(_|$)|_(PASS|PWD)$|^AWS_|^XAUTHORITY$",
    re.IGNORECASE,
)
# A name and password, or a token, in an address.
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s]+(?=@)")
_KEY = "PRIVATE KEY-----"


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


def set_variables(variables: Mapping[str, str]) -> None:
    """Sets variables of this process; libraries that read theirs once must not have been started."""
    os.environ.update(variables)


def visible_devices() -> str | None:
    """The CUDA devices that the user leaves to this process, as CUDA_VISIBLE_DEVICES names them; None for all."""
    return os.environ.get("CUDA_VISIBLE_DEVICES")


def is_secret(name: str, value: str) -> bool:
    """Whether a variable holds a secret, as far as its name or an address in its value tells."""
    return bool(_SECRET_NAME.search(name) or _IN_ADDRESS.search(value)) or _KEY in value


def without_password(text: str) -> str:
    """`text` without the names, passwords and tokens in its addresses, for messages."""
    return _IN_ADDRESS.sub("...", text)


@contextmanager
def candidates_variables() -> Iterator[None]:
    """While the block runs, a process that is started for candidates gets no secret of the user's.

    Nor does it import what lies in the current folder, unless this process does so too. The variables are taken out
    of this process for that time, as a program that is started sees them in its own memory however late they are
    deleted there.
    """
    taken = {name: value for name, value in os.environ.items() if is_secret(name, value)}
    before = {name: os.environ.get(name) for name in ("PYTHONSAFEPATH", "PYTHONPATH")}
    for name in taken:
        del os.environ[name]
    os.environ["PYTHONSAFEPATH"] = "1"
    if not sys.flags.safe_path and sys.path[0]:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (sys.path[0], before["PYTHONPATH"])))
    try:
        yield
    finally:
        os.environ.update(taken)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def own_compiler_cache(folder: Path) -> None:
    """Has torch's compiler keep its files in `folder`, unless the user has said where.

    Its own choice is a folder in the temporary one whose name everybody knows, and it unpickles what lies there.
    """
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(folder / "inductor"))


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
