"""Kernel Tuner's strategies, run by its own code in its simulation mode.

It is told the noisy times that every strategy of the comparison is told. As there, what fails is legal and costs a
measurement: `tune_cache` would keep failures out of the space, which no tuner can know beforehand.
"""

from __future__ import annotations

import ast
import contextlib
import io
import random
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from autotune.comparison.replay import seed_on
from autotune.comparison.rivals.base import Rival
from autotune.comparison.trace import Floats, Trace
from autotune.recordings.foreign import configuration_of, parameters_of
from autotune.recordings.kernel_tuner import write_kernel_tuner
from autotune.recordings.recording import Recording
from autotune.scratch import scratch_folder
from search_spaces import registry

_EXTRA = "rivals"


class KernelTuner(Rival):
    """Runs one of `kernel_tuner.interface.strategy_map`."""

    distribution = "kernel-tuner"

    def names(self) -> Sequence[str]:
        """All that it knows; some need packages of their own and say so."""
        interface = registry.optional("kernel_tuner.interface", _EXTRA)
        return sorted(interface.strategy_map)

    def search(self, recording: Recording, name: str, seed: int, trials: int, observed: Floats) -> Trace:
        """One simulated tuning; a schedule counts when it is first measured."""
        parameters = parameters_of(recording)
        rows = (configuration_of(s, parameters) for s in recording.space.schedules)
        places = {tuple(row.values()): place for place, row in enumerate(rows)}
        told = replace(recording, seconds=observed, samples=())
        error = ""
        results: list[dict[str, Any]] = []
        with scratch_folder() as folder, _quiet(), threadpool_limits(1), _seeded(seed_on(recording, seed)):
            write_kernel_tuner(told, folder / "cache.json")
            try:
                results = _simulated(recording.kernel, folder / "cache.json", name, trials, parameters, places)
            except Exception as raised:
                error = " ".join(f"{type(raised).__name__}: {raised}".split())[:500]
        first: dict[int, float] = {}
        for result in results:
            spent = 1e-3 * float(result.get("strategy_time", 0.0) + result.get("framework_time", 0.0))
            first.setdefault(places[tuple(result[parameter] for parameter in parameters)], spent)
        asked = list(first)[:trials]
        return Trace(
            strategy=f"kernel-tuner:{name}",
            space=recording.name,
            seed=seed,
            trials=trials,
            places=tuple(asked),
            observed=tuple(float(t) if np.isfinite(t) else None for t in observed[asked]),
            overhead=tuple(first[place] for place in asked),
            error=error,
        )


def _simulated(
    kernel: str,
    cache: Path,
    name: str,
    trials: int,
    parameters: Mapping[str, Sequence[object]],
    legal: Container[tuple[object, ...]],
) -> list[dict[str, Any]]:
    """What it measured, in order, repetitions included."""
    tuner = registry.optional("kernel_tuner", _EXTRA)
    constraint = registry.optional("constraint", _EXTRA)
    strategy, options = _parsed(name)
    results, _ = tuner.tune_kernel(
        kernel,
        "",
        # Given as a function, it is not held against the cache's.
        lambda _: 1,
        [],
        {parameter: list(values) for parameter, values in parameters.items()},
        restrictions=[constraint.FunctionConstraint(lambda *values: values in legal)],
        strategy=strategy,
        strategy_options={**options, "max_fevals": trials},
        cache=str(cache),
        simulation_mode=True,
        quiet=True,
    )
    return list(results)


def _parsed(name: str) -> tuple[str, Mapping[str, object]]:
    """A strategy and its options: `genetic_algorithm:popsize=20` -> `genetic_algorithm`, `{"popsize": 20}`."""
    strategy, *parts = name.split(":")
    options: dict[str, object] = {}
    for part in parts:
        option, _, value = part.partition("=")
        try:
            options[option] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            options[option] = value
    return strategy, options


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps its remarks from the terminal."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds the global generators, which its strategies draw from, and puts them back."""
    states = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


RIVAL = KernelTuner()
