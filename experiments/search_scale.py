"""What a suggestion costs, and what a trial leaves in memory, on a space far too large to enumerate.

The space is made up: three sketches of 12 to 14 knobs whose limits (shared memory, threads, registers, divisibility)
couple them, 10^9 legal schedules and more. Times come from a formula, so that all that is spent is the search's own.

    python experiments/search_scale.py [speed|memory|all] [STRATEGY...]

Seconds are CPU seconds of one thread, so that other work on the machine changes them little. Suggesting is counted
apart from fitting the cost model.
"""

from __future__ import annotations

import math
import multiprocessing
import platform
import sys
import tracemalloc
from collections.abc import Sequence

import numpy as np
import psutil
from noise.recorded import write_result
from threadpoolctl import threadpool_limits

from autotune.clock import cpu_seconds
from autotune.strategies.base import Result, Strategy
from autotune.tuner import Learner
from cost_models.features import Features
from cost_models.model import CostModel, Floats
from search_spaces import registry
from search_spaces.space import Constraint, Family, Knob, Schedule, ScheduleSpace, SketchSpace

STRATEGIES, MODELS = "autotune.strategies", "cost_models.models"
BATCHES = (8, 56)
TRIALS = 2_000
# A strategy that needs more for its trials is stopped there, and the result says after how many.
MOST_SECONDS, MOST_LONG_SECONDS = 60.0, 400.0
LONG_BATCH = 56
MARKS = (1_000, 10_000, 25_000, 50_000, 75_000, 100_000)
TRACED_TRIALS = 20_000
LONG_RUNS = ("random", "xgb", "hybrid")
SHARED, THREADS, REGISTERS = 227 * 1024, 1024, 255


def powers(low: int, high: int) -> tuple[int, ...]:
    """Powers of two from `low` to `high`."""
    return tuple(2**i for i in range(low.bit_length() - 1, high.bit_length()))


def tiled(name: str, *extra: Knob) -> SketchSpace:
    """A tiled product: block, warp and thread tiles, stages, vector widths and orders under the limits of a device."""
    knobs = (
        Knob("block_m", Family.TILE_SIZES, powers(16, 512)),
        Knob("block_n", Family.TILE_SIZES, powers(16, 512)),
        Knob("block_k", Family.TILE_SIZES, powers(8, 256)),
        Knob("thread_m", Family.TILE_SIZES, powers(1, 16)),
        Knob("thread_n", Family.TILE_SIZES, powers(1, 16)),
        Knob("stages", Family.SHARED_MEMORY, (1, 2, 3, 4, 5, 6, 7, 8)),
        Knob("padding", Family.SHARED_MEMORY, (0, 4, 8, 16)),
        Knob("vector_a", Family.VECTOR_WIDTH, powers(1, 8)),
        Knob("vector_b", Family.VECTOR_WIDTH, powers(1, 8)),
        Knob("order", Family.LOOP_ORDER, ("mnk", "mkn", "nmk", "nkm", "kmn", "knm")),
        Knob("unroll", Family.UNROLLING, powers(1, 64)),
        Knob("split_k", Family.PARALLELISM, (1, 2, 3, 4, 6, 8, 12, 16)),
        *extra,
    )
    limits = (
        Constraint("too many threads", ("block_m", "block_n", "thread_m", "thread_n"), fits_threads),
        Constraint("too much shared memory", ("block_m", "block_n", "block_k", "stages", "padding"), fits_shared),
        Constraint("too many registers", ("thread_m", "thread_n", "vector_a", "vector_b"), fits_registers),
        Constraint("a vector is wider than its row", ("block_k", "vector_a"), lambda k, v: k % v == 0 and v <= k),
        Constraint("a vector is wider than its row", ("block_n", "vector_b"), lambda n, v: v * 4 <= n),
    )
    return SketchSpace(name, knobs, limits)


def fits_threads(m: int, n: int, thread_m: int, thread_n: int) -> bool:
    """Whole warps, and no more than a block may have."""
    threads = (m // thread_m) * (n // thread_n)
    return threads % 32 == 0 and threads <= THREADS


def fits_shared(m: int, n: int, k: int, stages: int, padding: int) -> bool:
    """Both operands' tiles in every stage."""
    return 2 * stages * ((m + padding) * k + (n + padding) * k) <= SHARED


def fits_registers(m: int, n: int, vector_a: int, vector_b: int) -> bool:
    """Accumulators and what is loaded for them."""
    return m * n + m * vector_a + n * vector_b <= REGISTERS


def large_space() -> ScheduleSpace:
    """Three sketches of 12, 13 and 14 knobs."""
    swizzle = Knob("swizzle", Family.LOOP_ORDER, powers(1, 32))
    clusters = Knob("cluster", Family.PARALLELISM, ((1, 1), (1, 2), (2, 1), (2, 2), (4, 1), (1, 4)))
    return ScheduleSpace((tiled("tiled"), tiled("swizzled", swizzle), tiled("clustered", swizzle, clusters)))


def seconds_of(schedule: Schedule) -> float:
    """A formula with one best place a sketch and knobs that depend on each other."""
    m, n, k, unroll = (math.log2(schedule.integer(name)) for name in ("block_m", "block_n", "block_k", "unroll"))
    near = (m + n - 14) ** 2 + 0.5 * (m - n) ** 2 + 0.5 * (k - 5) ** 2 + 0.1 * (unroll - 3) ** 2
    near += (
        0.3 * (schedule.integer("stages") - 4) ** 2 + (schedule["order"] != "mkn") + 0.2 * schedule.integer("split_k")
    )
    near += 0.5 * (3 - math.log2(schedule.integer("vector_a"))) + (schedule.sketch != "clustered")
    return 1e-3 * (1 + 0.1 * near)


class Fitting(CostModel):
    """A cost model that notes what its fits cost.

    Attributes:
        spent: CPU seconds of all fits.
        fits: How many there were.
    """

    def __init__(self, model: CostModel) -> None:
        super().__init__(model.features, model.seed)
        self.heads = model.heads
        self._model = model
        self.spent, self.fits = 0.0, 0

    @property
    def ready(self) -> bool:
        """As the model."""
        return self._model.ready

    def fit(self, schedules: Sequence[Schedule], seconds: Floats) -> None:
        """As the model."""
        start = cpu_seconds()
        self._model.fit(schedules, seconds)
        self.spent += cpu_seconds() - start
        self.fits += 1

    def predict(self, schedules: Sequence[Schedule]) -> Floats:
        """As the model."""
        return self._model.predict(schedules)

    def choose(
        self, schedules: Sequence[Schedule], count: int, pending: Sequence[Schedule] = (), head: str = ""
    ) -> list[int]:
        """As the model."""
        return self._model.choose(schedules, count, pending, head)


class Run:
    """A search over the large space whose results come from the formula.

    Attributes:
        spent: CPU seconds of asking and telling, fits of the cost model included.
        trials: Schedules asked and told so far.
    """

    def __init__(self, name: str, seed: int = 0) -> None:
        make: type[Strategy] = registry.find(STRATEGIES, name, "strategy")
        space = large_space()
        self._model = Fitting(registry.find(MODELS, make.model or "random", "model")(Features(space), seed))
        self._learner = Learner(self._model)
        self._strategy = make(space, np.random.default_rng(seed), self._learner.aids({}))
        self.spent, self.trials = 0.0, 0

    def step(self, batch: int) -> None:
        """One ask and its results."""
        start = cpu_seconds()
        asked = self._strategy.ask(batch)
        self.spent += cpu_seconds() - start
        results = [Result(s, seconds_of(s)) for s in asked]
        start = cpu_seconds()
        self._strategy.tell(results)
        self._learner.tell(results)
        self.spent += cpu_seconds() - start
        self.trials += len(asked)

    @property
    def cost(self) -> dict[str, float]:
        """Milliseconds of CPU a trial: suggesting, fitting, both."""
        both, fitting = (1e3 * t / self.trials for t in (self.spent, self._model.spent))
        return {
            "suggesting_ms": round(both - fitting, 3),
            "fitting_ms": round(fitting, 3),
            "both_ms": round(both, 3),
            "fits": self._model.fits,
        }


def speed(name: str, batch: int) -> dict[str, float]:
    """Cost of a suggestion over `TRIALS` trials, and over the last tenth of them."""
    run = Run(name)
    while run.trials < 0.9 * TRIALS and run.spent < MOST_SECONDS:
        run.step(batch)
    before, done = run.spent, run.trials
    while run.trials < TRIALS and run.spent < MOST_SECONDS:
        run.step(batch)
    late = 1e3 * (run.spent - before) / (run.trials - done) if run.trials > done else math.nan
    return {"trials": run.trials, **run.cost, "last_tenth_both_ms": round(late, 3)}


def memory(name: str) -> dict[str, object]:
    """Resident memory after so many trials, and what each of the later ones leaves."""
    run, process = Run(name), psutil.Process()
    marks: dict[int, float] = {}
    for mark in MARKS:
        while run.trials < mark and run.spent < MOST_LONG_SECONDS:
            run.step(LONG_BATCH)
        marks[run.trials] = process.memory_info().rss
        if run.trials < mark:
            break
    first, last = list(marks)[len(marks) // 2], list(marks)[-1]
    return {
        "resident_mb": {str(mark): round(size / 2**20, 1) for mark, size in marks.items()},
        "bytes_a_trial": round((marks[last] - marks[first]) / max(1, last - first)),
        **run.cost,
    }


def traced(name: str) -> dict[str, object]:
    """Bytes of Python objects that a trial leaves, by the file that made them."""
    run = Run(name)
    while run.trials < TRACED_TRIALS // 2:
        run.step(LONG_BATCH)
    tracemalloc.start()
    before, done = tracemalloc.take_snapshot(), run.trials
    while run.trials < TRACED_TRIALS:
        run.step(LONG_BATCH)
    grown = tracemalloc.take_snapshot().compare_to(before, "filename")
    tracemalloc.stop()
    trials = run.trials - done
    largest = sorted(grown, key=lambda g: -g.size_diff)[:5]
    return {
        "bytes_a_trial": round(sum(g.size_diff for g in grown) / trials),
        "largest": {"/".join(g.traceback[0].filename.split("/")[-2:]): round(g.size_diff / trials) for g in largest},
    }


def alone(job: tuple[str, tuple[object, ...]]) -> dict[str, object]:
    """Runs a function of this file by name, in a process of its own and on one thread."""
    name, arguments = job
    with threadpool_limits(1):
        return globals()[name](*arguments)


def main(what: str = "all", *names: str) -> None:
    """Runs the parts asked for and writes the result."""
    known = registry.names(STRATEGIES)
    chosen = names or tuple(n for n in known if n != "exhaustive")
    result: dict[str, object] = {
        "question": "what a suggestion costs and what a trial leaves in memory, on a space that cannot be enumerated",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "space": {"knobs": [len(s.knobs) for s in large_space().sketches], "legal_estimated": legal()},
        "trials": TRIALS,
    }
    # A fresh process for each: the memory of one must not be taken for another's.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:

        def ask(function: str, *arguments: object) -> object:
            return pool.map(alone, [(function, arguments)], chunksize=1)[0]

        if what in {"speed", "all"}:
            result["speed"] = {n: {f"batch {b}": ask("speed", n, b) for b in BATCHES} for n in chosen}
        if what in {"memory", "all"}:
            long_runs = [n for n in LONG_RUNS if n in known and n in chosen]
            result["memory"] = {n: ask("memory", n) for n in long_runs}
            result["objects"] = {n: ask("traced", n) for n in long_runs}
    write_result("search_scale", result)


def legal() -> float:
    """Legal schedules, estimated from draws."""
    return float(f"{large_space().size(np.random.default_rng(0)).legal:.2e}")


if __name__ == "__main__":
    main(*sys.argv[1:])
