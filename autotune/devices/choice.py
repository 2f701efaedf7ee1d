"""Which of the devices that are here take part: what `--devices` means."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.devices.base import Place
from search_spaces.errors import AutotuneError

ALL = "all"
# For work that is not worth more than one device.
FIRST = "0"


def chosen_places(places: Sequence[Place], devices: str) -> list[Place]:
    """Those that `devices` names, in the order of the machine.

    Args:
        places: The devices that are here.
        devices: Their names separated by commas; "" or `all` for all.

    Raises:
        AutotuneError: It names one that is not there, or none.
    """
    if devices in ("", ALL):
        return list(places)
    named = [part.strip() for part in devices.split(",")]
    known = [place.name for place in places]
    for name in named:
        if name not in known:
            raise AutotuneError(
                f"--devices names '{name}', which is not here", f"write {ALL}, or what you want of {','.join(known)}"
            )
    return [place for place in places if place.name in named]
