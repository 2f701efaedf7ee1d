"""Importing: files of other tuners, told by what is in them, become warm starts, recordings and entries in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.exporters.base import slug
from autotune.importers.base import Imported, Importer
from autotune.importers.metaschedule import RECORDS, WORKLOADS
from autotune.journal import FILE as JOURNAL
from autotune.recordings.bounded import faults_as_bad_log, unpacked
from autotune.recordings.finding import read_recording
from autotune.recordings.kernel_tuner import json_of_cache
from autotune.recordings.native import SUFFIX, write_recording
from autotune.tuned_log import FILE as TUNED_LOG
from autotune.tuned_log import SCHEMA as TUNED_LOG_SCHEMA
from autotune.tuned_log import Entry, read_tuned_log, write_entries
from autotune.warm_start import FILE, SCHEMA, Proposal, proposals_of, read_warm_start, write_warm_start
from search_spaces import registry
from search_spaces.errors import BadLog, CannotWrite

IMPORTERS = "autotune.importers"
# What a JSON file can say of a whole number, both in a file of ours and in most other programs.
_LEAST, _MOST = -(2**63), 2**63 - 1
_LONGEST_NAME = 4096
_HINT = "'autotune import --help' lists the formats"


@dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes:
        path: The file, or a database's folder.
        summary: What it is.
        content: What is in it.
    """

    path: Path
    summary: str
    content: Imported


def find_importer(name: str) -> Importer:
    """The importer called `name`."""
    found = registry.find(IMPORTERS, name, "importer")
    assert isinstance(found, Importer)
    return found


def read_foreign(path: Path, device: str = "") -> Source:
    """Reads a file of any format that there is an importer for; runs no code from it.

    Args:
        path: The file; of a MetaSchedule database its folder or a file in it.
        device: Name of the device where the file tells none.

    Raises:
        BadLog: It is damaged, or of none of the formats.
        MissingDependency: A package that reading it needs is not installed.
    """
    if path.name in (WORKLOADS, RECORDS):
        path = path.parent
    with faults_as_bad_log(path, "file of another tuner", _HINT):
        return _read(path, None if path.is_dir() else json_of_cache(unpacked(path)), device)


def _read(path: Path, data: Any, device: str) -> Source:
    importers = [find_importer(name) for name in registry.names(IMPORTERS)]
    importer = next((i for i in importers if i.takes(path, data)), None)
    if importer is None:
        known = "; ".join(i.summary for i in importers)
        raise BadLog(f"{path} is in no format that can be imported", f"known: {known}")
    content = importer.read(path, data, device)
    if not (content.proposals or content.recordings or content.entries):
        raise BadLog(f"nothing in {path} can be used here ({'; '.join(content.left_out) or 'it is empty'})")
    _require_sound(content)
    return Source(path, importer.summary, content)


def _require_sound(content: Imported) -> None:
    """What no file of ours can hold, or no line can show.

    Raises:
        ValueError: There is such a name or number.
    """
    spaces = [sketch for r in content.recordings for sketch in r.space.sketches]
    names = [text for r in content.recordings for text in (r.name, r.kernel, r.device)]
    names += [text for p in content.proposals for text in (p.kernel, p.device, p.source, *p.knobs)]
    names += [text for s in spaces for text in (s.sketch, *(k.name for k in s.knobs))]
    if not all(text.isprintable() and len(text) <= _LONGEST_NAME for text in names):
        raise ValueError("a name in it is too long or holds control characters")
    values = [v for p in content.proposals for v in p.knobs.values()]
    values += [v for s in spaces for k in s.knobs for v in k.values]
    numbers = [part for v in values for part in (v if isinstance(v, tuple) else (v,)) if isinstance(part, int)]
    if not all(_LEAST <= number <= _MOST for number in numbers):
        raise ValueError("a number in it has more than 64 bits")


def write_imported(out: Path, sources: Sequence[Source]) -> tuple[Path, ...]:
    """Writes what was read to a folder that is not there yet or is empty.

    Warm starts go to `warm-start.json`, entries to `tuned-log.json`, each recording to a file of its own.

    Returns:
        The files.

    Raises:
        CannotWrite: The folder is taken or cannot be written.
    """
    try:
        if out.exists() and any(out.iterdir()):
            raise CannotWrite(f"{out} is there already", "choose another --out")
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWrite(f"{out} cannot be written ({error.strerror})", "choose another --out") from error
    paths = []
    for name, recording in _named(sources).items():
        paths.append(out / f"{name}{SUFFIX}")
        write_recording(replace(recording, name=name), paths[-1])
    proposals = [p for source in sources for p in source.content.proposals]
    if proposals:
        paths.append(out / FILE)
        write_warm_start(paths[-1], proposals)
    entries = [e for source in sources for e in source.content.entries]
    if entries:
        paths.append(out / TUNED_LOG)
        write_entries(paths[-1], entries)
    return tuple(paths)


def _named(sources: Sequence[Source]) -> Mapping[str, Any]:
    """Each recording under a name of its own that can be a file's."""
    named: dict[str, Any] = {}
    for recording in (r for source in sources for r in source.content.recordings):
        name = "__".join(slug(part)[:60] for part in recording.name.split("__"))[:200]
        count = sum(1 for known in named if known == name or known.startswith(f"{name}__"))
        named[f"{name}__{count + 1}" if name in named else name] = recording
    return named


def proposals_in(path: Path) -> tuple[Proposal, ...]:
    """What a search may start from in a file or folder of any kind.

    Args:
        path: A warm start, an import's folder, a tuned log, a recording, a run, or whatever `read_foreign` reads.

    Raises:
        BadLog: It is none of these.
    """
    if (path / FILE).is_file():
        return read_warm_start(path / FILE)
    if path.is_dir() and (path / TUNED_LOG).is_file():
        return tuple(_of_entries(read_tuned_log(path / TUNED_LOG).entries, path))
    if path.name.endswith(SUFFIX) or path.name == JOURNAL or (path / JOURNAL).is_file():
        return proposals_of(read_recording(path), f"recording {path.name}")
    schema = _schema(path)
    if schema == SCHEMA:
        return read_warm_start(path)
    if schema == TUNED_LOG_SCHEMA:
        return tuple(_of_entries(read_tuned_log(path).entries, path))
    return read_foreign(path).content.proposals


def _schema(path: Path) -> str:
    """What a JSON file says of its schema, "" where it is none or says nothing."""
    if path.is_dir():
        return ""
    with faults_as_bad_log(path, "file of another tuner", _HINT):
        data = json_of_cache(unpacked(path))
    found = data.get("schema") if isinstance(data, dict) else None
    return found if isinstance(found, str) else ""


def _of_entries(entries: Sequence[Entry], path: Path) -> Iterator[Proposal]:
    for entry in entries:
        about = (f"tuned log {path.name}", entry.task.workload.operator, entry.device.name)
        axes, dtype = dict(entry.task.workload.axes), entry.task.workload.dtype
        yield Proposal(entry.schedule, *about, axes, dtype, entry.seconds)
        for other in entry.runners_up:
            yield Proposal(other.schedule, *about, axes, dtype, other.seconds)
