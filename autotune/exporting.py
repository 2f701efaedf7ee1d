"""Exporting: winners chosen, written apart, opened again by the consumer, and only then put in place."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autotune.clock import now
from autotune.environment import versions_of
from autotune.exporters.base import Exporter
from autotune.recall import Winner, recall
from autotune.tuned_log import Entry, ranked
from search_spaces import registry
from search_spaces.errors import AutotuneError, CannotWrite, MissingDependency, NothingValid

EXPORTERS = "autotune.exporters"
SIDE_FILE = "provenance.json"
SCHEMA = "export/1"
_FOREIGN = "it was measured on a device of another arch than the target's"
_UNVERIFIED = "it was imported and nobody verified it: 'autotune verify LOG --out VERIFIED.json' does"


class Exported(msgspec.Struct, frozen=True):
    """The side file of an export: where everything in the folder is from. The format's own files hold none of it.

    Attributes:
        schema: `export/1`.
        format: Name of the exporter.
        written: UTC, ISO 8601.
        versions: This project, where it is installed, and the consumer's packages -> version.
        files: Path in the folder -> sha256.
        entries: The entries of the tuned log, whole.
        refused: Entries that the format cannot express, each with the reason.
        notes: What the consumer's user must know.
    """

    schema: str
    format: str
    written: str
    versions: Mapping[str, str]
    files: Mapping[str, str]
    entries: tuple[Entry, ...]
    refused: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Chosen:
    """Winners of a log that a format can express, and why the others are none of them."""

    winners: tuple[Winner, ...]
    refused: tuple[str, ...]


def format_names() -> tuple[str, ...]:
    """Formats as they are named on the command line."""
    return tuple(name.replace("_", "-") for name in registry.names(EXPORTERS))


def find_exporter(name: str) -> Exporter:
    """The exporter called `name`."""
    found = registry.find(EXPORTERS, name.replace("-", "_"), "exporter")
    assert isinstance(found, Exporter)
    return found


def chosen(entries: Sequence[Entry], exporter: Exporter, operators: Sequence[str] = ()) -> Chosen:
    """The best entry of each workload, target and device that the format can express.

    So a log that holds the best of several code generators serves the consumers of each.
    """
    winners, refused = [], []
    for group in ranked(entries):
        for entry in group:
            try:
                winner = recall(entry, operators)
                reason = _UNVERIFIED if entry.unverified else _FOREIGN if entry.foreign else exporter.why_not(winner)
            except AutotuneError as error:
                reason, winner = str(error), None
            if winner is not None and reason is None:
                winners.append(winner)
                break
            refused.append(f"{entry.task.workload} for {entry.task.target} on {entry.device.name}: {reason}")
    return Chosen(tuple(winners), tuple(refused))


def export(entries: Sequence[Entry], name: str, out: Path, operators: Sequence[str] = ()) -> Exported:
    """Writes `entries` in the format called `name` to the folder `out`, whole or not at all.

    Args:
        entries: Of tuned logs.
        name: A format of `format_names`.
        out: A folder that is not there yet, is empty, or holds an earlier export in this format.
        operators: Files and modules of operators that may be imported where an entry names them.

    Raises:
        MissingDependency: The consumer is not installed, so that nothing could be proven.
        NothingValid: No entry can be expressed.
        ExportFault: The consumer does not take the result.
        CannotWrite: The folder is taken or cannot be written.
    """
    exporter = find_exporter(name)
    missing = exporter.missing()
    if missing is not None:
        raise MissingDependency(f"nothing can be exported to {name}: {missing}")
    found = chosen(entries, exporter, operators)
    if not found.winners:
        raise NothingValid(f"no entry can be exported to {name}: {'; '.join(found.refused) or 'the log is empty'}")
    _require_free(out, name)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
            draft = Path(scratch) / "export"
            draft.mkdir()
            exporter.write(found.winners, draft)
            notes = tuple(exporter.reopen(found.winners, draft))
            made = _described(exporter, name, found, notes, draft)
            (draft / SIDE_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(made), indent=1))
            _put_in_place(draft, out, Path(scratch) / "before")
    except OSError as error:
        raise CannotWrite(f"{out} cannot be written ({error.strerror})", "choose another --out") from error
    return made


def _described(exporter: Exporter, name: str, found: Chosen, notes: tuple[str, ...], draft: Path) -> Exported:
    files = sorted(path for path in draft.rglob("*") if path.is_file())
    return Exported(
        schema=SCHEMA,
        format=name,
        written=now().isoformat(timespec="seconds"),
        versions=versions_of(("kernel-autotune", *exporter.packages)),
        files={str(path.relative_to(draft)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        entries=tuple(winner.entry for winner in found.winners),
        refused=found.refused,
        notes=notes,
    )


class _Kind(msgspec.Struct):
    """What tells an export in a folder."""

    schema: str
    format: str


def _require_free(out: Path, name: str) -> None:
    if not out.exists():
        return
    if out.is_dir() and not any(out.iterdir()):
        return
    try:
        kind = msgspec.json.decode((out / SIDE_FILE).read_bytes(), type=_Kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise CannotWrite(f"{out} is there already and is no export", "choose another --out") from error
    if kind != _Kind(SCHEMA, name):
        raise CannotWrite(f"{out} holds an export to {kind.format}", "choose another --out")


def _put_in_place(draft: Path, out: Path, before: Path) -> None:
    """Two renames; what was there stays until the new folder is complete."""
    if out.exists():
        out.replace(before)
    try:
        draft.replace(out)
    except OSError:
        if before.exists():
            before.replace(out)
        raise
    shutil.rmtree(before, ignore_errors=True)
