"""Exported MetaSchedule databases in TVM: one that tells devices apart, for any of TVM's entry points."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from autotune.exporters.base import slug
from autotune.generators.tvm import vectorise_exponential
from autotune.recall import Winner
from search_spaces import registry
from search_spaces.errors import BadLog
from search_spaces.sketches.tvm.base import EXTRA, one_line

__all__ = ["database_folder", "tuned_database", "vectorise_exponential"]

# What two targets must agree in where both name it.
_HARDWARE = ("kind", "arch", "mcpu", "model")


def database_folder(winner: Winner) -> Path:
    """Where in an export the database of a winner's device and target is, for the TVM that is installed."""
    version = metadata.version("apache-tvm")
    return Path(f"tvm-{version}") / f"{slug(winner.entry.device.name)}--{slug(str(winner.task.target))}"


def tuned_database(export: Path | str, model: str = "") -> Any:
    """A `PyDatabase` over every database of an export that fits the installed TVM, told apart by target.

    Use it as `with target, tuned_database("exported"): ...`, or give it to `compile_relax`. Of records for the same
    program it offers those whose target agrees with the one that is compiled for in kind, arch, mcpu and model, where
    both name them; fastest first. It takes no new records.

    Args:
        export: A folder that `autotune export --format tvm` wrote.
        model: Name of the device that is compiled for, as its driver gives it; "" for any.

    Raises:
        BadLog: No database for this TVM is in there, or one does not open.
    """
    ms = registry.optional("tvm.s_tir.meta_schedule", EXTRA)
    derived = registry.optional("tvm.ir.utils", EXTRA).derived_object
    databases = _opened(ms, Path(export))
    base = ms.database.PyDatabase

    class TunedDatabase(base):  # type: ignore[misc, valid-type]
        """Asks every database, and filters what it gives by target."""

        def has_workload(self, mod: Any) -> bool:
            return any(d.has_workload(mod) for d in databases)

        def commit_workload(self, mod: Any) -> Any:
            return next((d for d in databases if d.has_workload(mod)), databases[0]).commit_workload(mod)

        def commit_tuning_record(self, record: Any) -> None:
            raise RuntimeError("a tuned log is not tuned further")

        def get_top_k(self, workload: Any, top_k: int) -> list[Any]:
            records = [r for d in databases if d.has_workload(workload.mod) for r in d.get_all_tuning_records()]
            return _fastest([r for r in records if r.workload.same_as(workload)])[:top_k]

        def get_all_tuning_records(self) -> list[Any]:
            return [r for d in databases for r in d.get_all_tuning_records()]

        def query_tuning_record(self, mod: Any, target: Any, workload_name: str | None = None) -> Any:
            asked = {**dict(target.export()), **({"model": model} if model else {})}
            found = [
                record
                for database in databases
                if database.has_workload(mod)
                for record in database.get_top_k(database.commit_workload(mod), len(database))
                if agrees(dict(record.target.export()), asked)
            ]
            return next(iter(_fastest(found)), None)

        def __len__(self) -> int:
            return sum(map(len, databases))

    return derived(TunedDatabase)()


def agrees(recorded: Mapping[str, Any], asked: Mapping[str, Any]) -> bool:
    """Whether two exported targets name no different hardware."""
    both = [key for key in _HARDWARE if recorded.get(key) and asked.get(key)]
    return all(str(recorded[key]) == str(asked[key]) for key in both)


def _opened(ms: Any, export: Path) -> list[Any]:
    folder = export / f"tvm-{metadata.version('apache-tvm')}"
    places = sorted(path.parent for path in folder.glob("*/database_workload.json"))
    if not places:
        raise BadLog(f"{export} holds no database for TVM {metadata.version('apache-tvm')}", "export the log again")
    try:
        return [ms.database.JSONDatabase(work_dir=str(place), allow_missing=False) for place in places]
    except (RuntimeError, ValueError, TypeError) as error:
        raise BadLog(f"a database in {export} does not open ({one_line(error)})", "export the log again") from error


def _fastest(records: list[Any]) -> list[Any]:
    return sorted(records, key=lambda r: sum(float(s) for s in r.run_secs) / len(r.run_secs))
