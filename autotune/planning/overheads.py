"""What a search costs beside its trials: starting, proposing, writing down, the final race."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from search_spaces.errors import BadLog

SHIPPED = Path(__file__).with_name("overheads.json")
_Seconds = Annotated[float, Meta(ge=0.0, le=1e6)]


class Overheads(msgspec.Struct, frozen=True):
    """Seconds that no further device makes shorter; written by experiments/fleet_overheads.py.

    Attributes:
        start: From the start of a run until its first candidate is asked for: processes, device, inputs, references.
        suggest: The strategy's for one schedule, fitting its model included.
        record: The journal's for one trial.
        final: Checks of the finalists and the race, on one device.
        date: When they were taken.
        device: Where.
        sources: How each was taken.
    """

    start: _Seconds
    suggest: _Seconds
    record: _Seconds
    final: _Seconds
    date: str = ""
    device: str = ""
    sources: dict[str, str] = {}


def read_overheads(path: Path = SHIPPED) -> Overheads:
    """Those in a file; without one, those that come with the package.

    Raises:
        BadLog: It cannot be read, or holds none.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Overheads)
    except OSError as error:
        raise BadLog(f"{path} cannot be read ({error.strerror})", "leave --overheads out") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLog(f"{path} holds no overheads: {error}", "see experiments/fleet_overheads.py") from error
