"""Tuned logs joined and compared: a folder that many machines write to, and what two logs say differently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from autotune.exporters.base import slug
from autotune.identity import Difference, differences
from autotune.tuned_log import FILE, Entry, best_entries, entry_key, write_entries
from search_spaces.errors import CannotWrite
from search_spaces.space import digest


def write_shared(folder: Path, entries: Iterable[Entry]) -> tuple[Path, ...]:
    """Adds entries to a folder that any number of machines write to at once, with no lock.

    A folder a device and software, in it a file an entry, named by what it holds: equal entries are one file, and none
    is ever changed. Whoever reads it takes the best of each workload and device.

    Raises:
        CannotWrite: The folder cannot be written.
    """
    paths = []
    for entry in entries:
        environment = digest(msgspec.to_builtins([entry.device, entry.environment]))
        place = folder / f"{slug(entry.device.name)}-{environment[:12]}"
        name = f"{slug(str(entry.task.workload))}-{digest(msgspec.to_builtins(entry))}.{FILE}"
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(f"{place} cannot be made ({error.strerror})", "choose another --out") from error
        if not (place / name).exists():
            write_entries(place / name, [entry])
        paths.append(place / name)
    return tuple(paths)


@dataclass(frozen=True)
class Change:
    """What two logs say of one workload, target and device.

    Attributes:
        before: The first log's entry, None where it has none.
        after: The second's, None where it has none.
        differences: Fields of their identities that are not the same.
    """

    before: Entry | None
    after: Entry | None
    differences: tuple[Difference, ...] = ()

    @property
    def entry(self) -> Entry:
        """The later of the two."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def times_faster(self) -> float | None:
        """How many times faster the second's schedule was; None where one of them is missing."""
        if self.before is None or self.after is None:
            return None
        return self.before.seconds / self.after.seconds


def compare(before: Sequence[Entry], after: Sequence[Entry]) -> list[Change]:
    """The best entries of two logs, one against the other; those that are equal are left out."""
    first, second = ({entry_key(e): e for e in best_entries(entries)} for entries in (before, after))
    changes = []
    for key in dict.fromkeys((*first, *second)):
        one, other = first.get(key), second.get(key)
        if one != other:
            changes.append(Change(one, other, differences(one, other) if one and other else ()))
    return changes
