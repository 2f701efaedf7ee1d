"""Exports one tuned log with several versions of TVM, and has each version open, compile and run what it is given.

    python experiments/tvm_versions.py LOG PYTHON...

Each PYTHON is the interpreter of an environment with another apache-tvm and this project's other dependencies. The
export is made there, since a workload's line in a database is bound to the TVM that wrote it; then a process that knows
nothing of this project opens it (`examples/run_metaschedule.py`). The traces must be the same in all versions but for
objects in them, which each version writes in its own words. Every version is also given the databases of the others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from noise.recorded import write_result

from autotune.environment import read_environment

ROOT = Path(__file__).parents[1]
CONSUMER = ROOT / "experiments" / "examples" / "run_metaschedule.py"


def exported(python: str, log: Path, out: Path) -> list[str]:
    """The databases that the TVM of `python` made of the log."""
    words = [python, "-m", "autotune", "export", str(log), "--format", "tvm", "--out", str(out)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(str(path.parent) for path in out.glob("*/*/database_workload.json"))


def consumed(python: str, folders: Sequence[str]) -> dict[str, Any]:
    """What the consumer says of the folders; under `error` why the TVM does not open them."""
    done = subprocess.run([python, CONSUMER, *folders], cwd="/", capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:200]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def traces(said: Mapping[str, Any]) -> list[Any]:
    """The traces of one export's databases, without the objects that are written as JSON in a text."""
    return [_plain(f["traces"]) for f in said["folders"].values()]


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return "object" if isinstance(value, str) and value.startswith("{") else value


def summary(said: Mapping[str, Any]) -> dict[str, Any]:
    """Counts over the databases of one export."""
    folders = said["folders"].values()
    return {
        "records": sum(f["records"] for f in folders),
        "run": sum(f["run"] for f in folders),
        "largest_difference": max(f["largest_difference"] for f in folders),
    }


def main(log: Path, pythons: Sequence[str]) -> None:
    """Writes `results/tvm_versions.json`."""
    with tempfile.TemporaryDirectory() as scratch:
        folders = {p: exported(p, log, Path(scratch, str(i))) for i, p in enumerate(pythons)}
        own = {python: consumed(python, folders[python]) for python in pythons}
        version = {python: own[python]["tvm"] for python in pythons}
        others = {
            f"{version[reader]} reads {version[writer]}": consumed(reader, folders[writer]).get("error", "opens")
            for reader in pythons
            for writer in pythons
            if reader != writer
        }
    result = {
        "environment": read_environment({}).versions,
        "versions": {version[python]: summary(own[python]) for python in pythons},
        "traces_are_the_same": all(traces(own[p]) == traces(own[pythons[0]]) for p in pythons),
        "databases_of_other_versions": others,
    }
    write_result("tvm_versions", result)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
