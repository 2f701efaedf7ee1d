"""Gives every reader of files from strangers damaged files, and counts what it makes of them.

    python experiments/fuzz_readers.py [INPUTS [SEED [READER...]]]

A reader reads a file or says in one line why not; anything else is a fault: an exception that is no AutotuneError, a
message on several lines or with control characters, or more than half a minute of the processor. All readers together
get INPUTS, a reader that is named no more than its share. Writes results/fuzzing.json.
"""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock
from fuzzing.damage import Damage
from fuzzing.readers import READERS, Reader
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from noise.recorded import RESULTS, write_result

from autotune.clock import monotonic
from autotune.environment import read_environment
from search_spaces.errors import AutotuneError

INPUTS, SEED = 100_000, 0
LONGEST = 30
_KEPT = 5


class TooLong(BaseException):
    """A reader that hangs; no reader can take it for a fault of a file."""


@contextmanager
def limited() -> Iterator[None]:
    """Ends the block with `TooLong` after `LONGEST` seconds of this process's own, whatever else the machine does."""

    def ring(*_: object) -> None:
        raise TooLong(f"more than {LONGEST} s")

    signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def outcome(reader: Reader, path: Path) -> str:
    """`read`, `told` where one line says why not, else what is wrong."""
    try:
        with limited():
            reader.read(path)
    except AutotuneError as error:
        said = str(error)
        return "told" if said.isprintable() and said else f"message of several lines: {said[:80]!r}"
    except (Exception, TooLong) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}: {str(error)[:80]}"
    return "read"


def fuzzed(name: str, inputs: int, number: int) -> dict[str, Any]:
    """Counts of what one reader made of so many inputs; of the first faults an input each is kept."""
    reader, counts, start = READERS[name], Counter[str](), monotonic()
    kept: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        damage = Damage(reader.whole(folder))
        path = folder / reader.file

        @seed(number)
        @settings(
            max_examples=inputs,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.data())
        def one(data: Any) -> None:
            content = damage.drawn(data.draw)
            path.write_bytes(content)
            found = outcome(reader, path)
            counts[found] += 1
            if found not in ("read", "told") and len(kept) < _KEPT:
                kept.setdefault(found, content)

        one()
    faults = {found: count for found, count in counts.items() if found not in ("read", "told")}
    for found, content in kept.items():
        place = Path(tempfile.gettempdir()) / f"fuzzing-{name.replace(' ', '-').replace(',', '')}-{len(content)}.input"
        place.write_bytes(content)
        print(f"{name}: {found}: {place}", flush=True)
    seconds = monotonic() - start
    return {
        "inputs": counts.total(),
        "read": counts["read"],
        "told": counts["told"],
        "faults": faults,
        "seconds": seconds,
    }


def main(inputs: int, number: int, names: Sequence[str]) -> None:
    """Fuzzes the readers, each with its share of the inputs; a reader's result is kept as soon as it is there."""
    faulthandler.enable()
    whole = sum(reader.share for reader in READERS.values())
    for name in names:
        result = fuzzed(name, int(-(-inputs * READERS[name].share // whole)), number)
        print(name, result, flush=True)
        with FileLock(Path(tempfile.gettempdir(), "fuzzing.lock")):
            keep(name, {**result, "seed": number})


def keep(name: str, result: Mapping[str, Any]) -> None:
    """Puts a reader's result into results/fuzzing.json, beside those of the others."""
    path = RESULTS / "fuzzing.json"
    before = json.loads(path.read_text())["readers"] if path.is_file() else {}
    readers = {known: before[known] for known in READERS if known in before} | {name: dict(result)}
    total = sum(r["inputs"] for r in readers.values())
    faults = sum(sum(r["faults"].values()) for r in readers.values())
    environment = read_environment({}).versions
    write_result("fuzzing", {"environment": environment, "total": total, "faults": faults, "readers": readers})


if __name__ == "__main__":
    arguments = sys.argv[1:]
    chosen = arguments[2:] or list(READERS)
    main(int((arguments or [INPUTS])[0]), int((arguments[1:] or [SEED])[0]), chosen)
