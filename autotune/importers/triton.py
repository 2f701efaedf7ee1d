"""Triton's `NAME.autotune.json`, as `cache_results=True` or TRITON_CACHE_AUTOTUNING=1 leaves one a kernel and key."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from autotune.exporters.base import slug
from autotune.importers.base import UNKNOWN_DEVICE, Imported, Importer, foreign_recording
from autotune.measurement import Status
from autotune.recordings.foreign import Configuration, Origin, assembled, milliseconds
from autotune.warm_start import proposals_of

_ENDING = ".autotune.json"
# Triton keeps the quantiles 0.5, 0.2 and 0.8; of a normal distribution the last two are so many deviations apart.
_QUANTILES, _APART = 3, 1.6832
_LONGEST_KEY = 80


class _Config(msgspec.Struct):
    kwargs: dict[str, int | float | str | bool | None]
    num_warps: int
    num_stages: int
    num_ctas: int = 1
    maxnreg: int | None = None


class _Cache(msgspec.Struct):
    """The parts of a file that are read; times in milliseconds, one or three quantiles of it."""

    key: list[Any]
    configs_timings: list[tuple[_Config, list[float] | float]]


class TritonImporter(Importer):
    """Training data of a foreign kernel, and warm starts for kernels of ours with the same knobs."""

    summary = "autotune cache of Triton"

    def takes(self, path: Path, data: Any) -> bool:
        """It has `configs_timings`."""
        return isinstance(data, dict) and "configs_timings" in data

    def read(self, path: Path, data: Any, device: str) -> Imported:
        """The kernel is named by the file; the device by nobody."""
        cache = msgspec.convert(data, _Cache)
        if any(k in ("num_warps", "num_stages", "sketch") for c, _ in cache.configs_timings for k in c.kwargs):
            raise ValueError("a kernel's constant has the name of an option")
        values = [_values(config) for config, _ in cache.configs_timings]
        if not values or any(set(v) != set(values[0]) for v in values):
            raise ValueError("its configurations differ in their parameters" if values else "it holds none")
        kernel, key = path.name.removesuffix(_ENDING), json.dumps(cache.key)
        source = f"{self.summary} {path.name}, key {key[:_LONGEST_KEY]}"
        origin = Origin(kernel, device or UNKNOWN_DEVICE, {"key": key})
        pairs = zip(values, cache.configs_timings, strict=True)
        rows = [_configuration(v, [t] if isinstance(t, float) else t) for v, (_, t) in pairs]
        made = assembled(path, origin, list(values[0]), rows)
        named = replace(made, name=f"{made.name}__{slug(key)[:_LONGEST_KEY]}")
        recording = foreign_recording(named, source)
        return Imported(proposals_of(recording, source), (recording,))


def _values(config: _Config) -> dict[str, object]:
    """Everything that tells two configurations apart; what is at its default is left out where it is no knob."""
    rare = {"num_ctas": config.num_ctas, "maxnreg": config.maxnreg or 0}
    set_apart = {name: value for name, value in rare.items() if value not in (0, 1)}
    kwargs = {name: "none" if value is None else value for name, value in config.kwargs.items()}
    return {**kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages, **set_apart}


def _configuration(values: dict[str, object], times: list[float]) -> Configuration:
    seconds = milliseconds(times[0]) if times else 0.0
    if not seconds:
        return Configuration(values, Status.LAUNCH_ERROR, math.inf)
    low, high = map(milliseconds, times[1:_QUANTILES]) if len(times) == _QUANTILES else (0.0, 0.0)
    return Configuration(values, Status.OK, seconds, deviation=max(0.0, high - low) / _APART)


IMPORTER = TritonImporter()
