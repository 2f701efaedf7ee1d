"""Policies in files: an npz of plain arrays, which holds no code."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.policy.table import Floats
from search_spaces.errors import BadLog, CannotWrite

VERSION = 1


@dataclass(frozen=True)
class Stored:
    """What a file holds of a policy.

    Attributes:
        names: Of the parameters.
        values: Their rows, shape (names, twice the width of the hidden layer and one).
        scales: Mean and spread of each number of a task.
    """

    names: Sequence[str]
    values: Floats
    scales: Mapping[str, tuple[float, float]]

    def __post_init__(self) -> None:
        shape = self.values.shape
        if len(shape) != 2 or shape[0] != len(self.names) or shape[1] % 2 != 1 or shape[1] < 3:
            raise ValueError(f"{len(self.names)} names with parameters of shape {shape}")
        if len(set(self.names)) != len(self.names) or "" in self.names:
            raise ValueError("names that are not distinct")
        if not np.isfinite(self.values).all() or not all(
            np.isfinite(s).all() and s[1] > 0 for s in self.scales.values()
        ):
            raise ValueError("numbers that are not finite")


def write(path: Path, stored: Stored) -> None:
    """Writes a policy; its parameters have single precision.

    Raises:
        CannotWrite: The file cannot be written.
    """
    try:
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                version=np.array(VERSION),
                names=np.array(list(stored.names), np.str_),
                values=stored.values.astype(np.float32),
                context=np.array(list(stored.scales), np.str_),
                scales=np.array(list(stored.scales.values()), np.float64).reshape(-1, 2),
            )
    except OSError as error:
        raise CannotWrite(
            f"the policy cannot be written to {path} ({error.strerror})", "choose another file"
        ) from error


def read(path: Path) -> Stored:
    """Reads a policy.

    Raises:
        BadLog: It is no policy, is damaged or of another version.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            version = int(file["version"])
            if version != VERSION:
                raise BadLog(f"{path} is a policy of version {version}, this is version {VERSION}", "train it again")
            scales = dict(zip(file["context"].tolist(), map(tuple, file["scales"].tolist()), strict=True))
            return Stored(file["names"].tolist(), file["values"].astype(np.float64), scales)
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        EOFError,
        # Encrypted, or packed in a way that zipfile does not know.
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise BadLog(f"{path} is no policy, or is damaged ({type(error).__name__})", "train it again") from error
