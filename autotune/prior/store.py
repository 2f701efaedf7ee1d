"""Priors in files: a zip of JSON, plain arrays and the policy, none of which holds code."""

from __future__ import annotations

import io
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from autotune.policy.policy import Policy
from autotune.prior.experience import STEPS, Experience, Floats, SketchTable
from autotune.recordings.bounded import MOST_BYTES, write_whole
from search_spaces.errors import AutotuneError, BadLog
from search_spaces.schedule import Value

SCHEMA = "prior/1"
_HEADER, _ERRORS, _POLICY = "prior.json", "errors.npy", "policy.npz"
_FAILED = np.iinfo(np.uint16).max
_Word = Annotated[str, Meta(max_length=1000)]
# Files carry the date of none, so that equal content gives equal bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Stored:
    """What a file holds; see `autotune.prior.prior.Prior`."""

    experiences: tuple[Experience, ...]
    errors: Floats
    policy: Policy | None
    about: Mapping[str, str]

    def __post_init__(self) -> None:
        if self.errors.shape != (len(self.experiences), len(self.experiences)):
            raise ValueError(f"errors of shape {self.errors.shape} between {len(self.experiences)} tasks")
        if np.isinf(self.errors).any() or (self.errors < 0).any():
            raise ValueError("an error is negative or infinite")


class _Table(msgspec.Struct, frozen=True):
    sketch: _Word
    knobs: tuple[_Word, ...]
    values: tuple[tuple[int | str | bool | tuple[int, ...], ...], ...]


class _Experience(msgspec.Struct, frozen=True):
    name: _Word
    kernel: _Word
    device: _Word
    context: dict[_Word, float]
    tables: tuple[_Table, ...]
    credit: dict[_Word, str] = {}


class _Header(msgspec.Struct, frozen=True):
    schema: str
    experiences: Annotated[tuple[_Experience, ...], Meta(max_length=10_000)]
    about: dict[_Word, str] = {}


class _Schema(msgspec.Struct, frozen=True):
    schema: str


def write(path: Path, stored: Stored) -> None:
    """Writes `path`, whole or not at all.

    Raises:
        CannotWrite: It cannot be written.
    """
    header = _Header(SCHEMA, tuple(map(_without_arrays, stored.experiences)), dict(stored.about))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        _add(file, _HEADER, msgspec.json.encode(header))
        for number, experience in enumerate(stored.experiences):
            for place, table in enumerate(experience.tables):
                # Column after column, which packs several times as well.
                _add(file, f"{number}/{place}/picks.npy", _array_bytes(_narrow(table.picks)))
                _add(file, f"{number}/{place}/slowdown.npy", _array_bytes(_packed(table)))
        _add(file, _ERRORS, _array_bytes(stored.errors.astype(np.float32)))
        if stored.policy is not None:
            _add(file, _POLICY, _policy_bytes(stored.policy))
    write_whole(path, packed.getvalue())


def read(path: Path) -> Stored:
    """Reads what `write` wrote.

    Raises:
        BadLog: Not there, no prior, damaged, too large or of another version.
    """
    try:
        with zipfile.ZipFile(path) as file:
            if sum(entry.file_size for entry in file.infolist()) > MOST_BYTES:
                raise ValueError(f"it holds more than {MOST_BYTES // 1024**2} MiB")
            text = file.read(_HEADER)
            schema = msgspec.json.decode(text, type=_Schema).schema
            if schema != SCHEMA:
                raise BadLog(
                    f"{path} has schema {schema}, this version reads {SCHEMA}", "train it again with 'train-prior'"
                )
            header = msgspec.json.decode(text, type=_Header)
            experiences = tuple(_experience(file, n, data) for n, data in enumerate(header.experiences))
            policy = _policy_of(file.read(_POLICY)) if _POLICY in file.namelist() else None
            return Stored(experiences, _array(file, _ERRORS, 2, "f").astype(np.float64), policy, header.about)
    except AutotuneError:
        raise
    except (
        OSError,
        KeyError,
        EOFError,
        RuntimeError,
        ValueError,
        TypeError,
        OverflowError,
        zlib.error,
        zipfile.BadZipFile,
        msgspec.MsgspecError,
    ) as error:
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise BadLog(f"{path} is no prior ({reason})", "name a file that 'autotune train-prior' wrote") from error


def _without_arrays(experience: Experience) -> _Experience:
    tables = tuple(_Table(t.sketch, t.knobs, t.values) for t in experience.tables)
    return _Experience(
        experience.name,
        experience.kernel,
        experience.device,
        dict(experience.context),
        tables,
        dict(experience.credit),
    )


def _experience(file: zipfile.ZipFile, number: int, data: _Experience) -> Experience:
    tables = tuple(
        SketchTable(
            table.sketch,
            table.knobs,
            tuple(tuple(_value(v) for v in values) for values in table.values),
            _array(file, f"{number}/{place}/picks.npy", 2).T.astype(np.uint16),
            _unpacked(_array(file, f"{number}/{place}/slowdown.npy", 1).astype(np.uint16)),
        )
        for place, table in enumerate(data.tables)
    )
    return Experience(data.name, data.kernel, data.device, data.context, tables, data.credit)


def _value(value: object) -> Value:
    assert isinstance(value, (int, str, tuple))
    return value


def _narrow(picks: NDArray[np.uint16]) -> NDArray[np.generic]:
    turned = np.ascontiguousarray(picks.T)
    return turned.astype(np.uint8) if turned.max(initial=0) < 256 else turned


def _packed(table: SketchTable) -> NDArray[np.uint16]:
    steps = np.minimum(np.nan_to_num(table.slowdown, posinf=0.0) * STEPS, _FAILED - 1)
    return np.where(np.isfinite(table.slowdown), np.round(steps), _FAILED).astype(np.uint16)


def _unpacked(steps: NDArray[np.uint16]) -> NDArray[np.float64]:
    return np.where(steps == _FAILED, np.inf, steps / STEPS)


def _add(file: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, data)


def _array_bytes(array: NDArray[np.generic]) -> bytes:
    into = io.BytesIO()
    np.save(into, array, allow_pickle=False)
    return into.getvalue()


def _array(file: zipfile.ZipFile, name: str, dimensions: int, kind: str = "u") -> NDArray[Any]:
    found = np.load(io.BytesIO(file.read(name)), allow_pickle=False)
    if not isinstance(found, np.ndarray) or found.ndim != dimensions or found.dtype.kind != kind:
        raise ValueError(f"{name} is no array of numbers")
    return found


def _policy_bytes(policy: Policy) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / _POLICY
        policy.save(place)
        return place.read_bytes()


def _policy_of(data: bytes) -> Policy:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / _POLICY
        place.write_bytes(data)
        return Policy.load(place)
