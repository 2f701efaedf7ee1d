"""How tuning a model's kernels scales over a fleet: simulated with recorded costs, and what batches cost the strategy.

python experiments/fleet_scaling.py [fleet|batches|plot|tables]

`fleet` simulates experiments/llm.toml on 1 to 1000 devices, `batches` replays searches on recorded spaces with more and
more schedules asked for at a time, `plot` draws what both left in results/fleet_scaling.json and `tables` prints it, as
docs/fleet.md shows it. Without a word the first three.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from autotune.benchmark.suite import cases, load_suite
from autotune.budget import TRIALS
from autotune.clock import now
from autotune.display import pretty_json
from autotune.environment import read_environment
from autotune.pace import kept_in_flight
from autotune.planning.costs import CostBook
from autotune.planning.fleet import FleetTime, Workload, fleet_time
from autotune.planning.overheads import read_overheads
from autotune.planning.simulation import Crew, simulated
from autotune.recordings.finding import find_recordings, read_recording
from autotune.task_options import TaskOptions, make_task

HERE = Path(__file__).parent
RESULT, PICTURE = HERE / "results" / "fleet_scaling.json", HERE / "results" / "fleet_scaling.svg"
DEVICES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
MARKED = (1, 8, 64, 1000)
BUILDERS = (4, 16)
# Schedules asked for at a time, and spaces on which that is tried.
BATCHES = (4, 16, 56, 200)
SPACES = ("matmul__h200__m4096-n4096", "attention__h200__b4-h32-g32-s4096-d128-causal1", "softmax__h200__m16384-n4096")
REPEATS, BUDGET = 6, 200


def recorded_costs() -> CostBook:
    """What trials cost in the recordings on an H200."""
    return CostBook([read_recording(p) for p in find_recordings([HERE / "spaces" / "h200"], HERE / "spaces")])


def workloads() -> list[Workload]:
    """The searches of experiments/llm.toml with the costs of the recordings."""
    book, made = recorded_costs(), []
    for case in cases(load_suite(str(HERE / "llm.toml"))):
        task = make_task(TaskOptions(case.op, "cuda -arch=sm_90", None, case.shape, case.dtype), measure_roof=False)
        made.append(Workload(case.title, book.costs_for(task), TRIALS["cuda"], waves=False))
    return made


def against_recorded() -> list[dict[str, object]]:
    """Searches of results/h200, on one device with 16 builders, as they were and as they are simulated."""
    book, overheads = recorded_costs(), read_overheads()
    rows = []
    for path in sorted((HERE / "results" / "h200").glob("*.json")):
        result = json.loads(path.read_text())
        named = result["entry"]["task"]
        shape = ",".join(f"{name}={extent}" for name, extent in named["workload"]["axes"])
        options = TaskOptions(named["reference"], named["target"], None, shape, named["workload"]["dtype"])
        costs = book.costs_for(make_task(options, measure_roof=False))
        took = simulated(costs, result["new_trials"], Crew(1, 16), overheads, np.random.default_rng(0), waves=False)
        rows.append(
            {
                "workload": path.stem,
                "costs": costs.source,
                "recorded_seconds": result["total_seconds"],
                "simulated_seconds": took.seconds,
                "recorded_build_seconds": result["build_seconds"],
                "simulated_build_seconds": took.build,
                "recorded_device_seconds": result["device_seconds"],
                "simulated_device_seconds": took.device,
            }
        )
    return rows


def fleet() -> dict[str, object]:
    """Wall times, one search on each device or group of devices, and one after the other on all."""
    works, overheads = workloads(), read_overheads()

    def row(devices: int, builders: int, *, together: bool) -> dict[str, object]:
        found: FleetTime = fleet_time(works, devices, builders, overheads, 0, together=together)
        return {**asdict(found), "binds": found.binds}

    return {
        "workloads": [{"title": w.title, "costs": w.costs.source, "trials": w.trials} for w in works],
        "against_recorded": against_recorded(),
        "overheads": json.loads(pretty_json(overheads)),
        "apart": {str(b): [row(n, b, together=False) for n in DEVICES] for b in BUILDERS},
        "together": {str(b): [row(n, b, together=True) for n in DEVICES] for b in BUILDERS},
        "in_flight": {str(b): {str(n): kept_in_flight(b * n, n) for n in MARKED} for b in BUILDERS},
    }


def batches() -> dict[str, object]:
    """Scores of searches, as `autotune compare` gives them, by how many schedules are asked for at a time."""
    found = {}
    for batch in BATCHES:
        with tempfile.TemporaryDirectory() as folder:
            words = ["compare", "--strategies", "hybrid,random", "--on", ",".join(SPACES), "--repeats", str(REPEATS)]
            words += ["--budgets", str(BUDGET), "--batch", str(batch), "--prior", "none", "--jobs", "1"]
            words += ["--out", folder, "--json", "--quiet"]
            done = subprocess.run(
                [sys.executable, "-m", "autotune", *words],
                cwd=HERE.parent,
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
        result = json.loads(done.stdout)
        found[str(batch)] = {
            "median_measurements_to_95_percent": result["median_measurements_to_95_percent"],
            "score": {name: parts[f"score_{BUDGET}"]["value"] for name, parts in result["summary"].items()},
        }
    return {"spaces": SPACES, "repeats": REPEATS, "budget": BUDGET, "by_batch": found}


def plot(result: dict[str, dict[str, object]]) -> None:
    """Speed-up over one device, and where an even share would be."""
    from matplotlib import pyplot
    from matplotlib.axes import Axes

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.6, 4.0))

    def drawn(axes: Axes, rows: Sequence[dict[str, float]], name: str, style: str) -> None:
        first = rows[0]["seconds"]
        axes.plot([r["devices"] for r in rows], [first / r["seconds"] for r in rows], style, label=name, markersize=4)

    for way, style in (("apart", "o-"), ("together", "s--")):
        for builders, rows in result["fleet"][way].items():
            words = "a search on each share" if way == "apart" else "one search at a time"
            drawn(left, rows, f"{words}, {builders} builders a device", style)
    left.plot(DEVICES, DEVICES, color="grey", linewidth=0.8, label="as many times faster as devices")
    left.set(xscale="log", yscale="log", xlabel="devices", ylabel="times faster than one device")
    left.legend(fontsize=7)
    by_batch = result["batches"]["by_batch"]
    for name in ("hybrid", "random"):
        right.plot(BATCHES, [by_batch[str(b)]["score"][name] for b in BATCHES], "o-", label=name, markersize=4)
    right.set(xscale="log", xlabel="schedules asked for at a time", ylabel=f"score over {BUDGET} measurements")
    right.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None})


def tables(result: dict[str, dict[str, object]]) -> tuple[str, str, str]:
    """In Markdown: the fleets, the batches, and the simulation against what was recorded."""
    fleet, by_batch = result["fleet"], result["batches"]["by_batch"]
    rows = [
        ("devices", "searches at a time", "wall time", "times faster", "builders busy", "devices busy", "waits for")
    ]
    apart = fleet["apart"][str(BUILDERS[-1])]
    rows += [
        (
            f"{r['devices']:,}",
            str(r["searches"]),
            f"{r['seconds'] / 60:.1f} min",
            f"{apart[0]['seconds'] / r['seconds']:.1f}",
            f"{r['building']:.0%}",
            f"{r['measuring']:.0%}",
            r["binds"],
        )
        for r in apart
        if r["devices"] in MARKED
    ]
    batches = [("asked for at a time", "hybrid", "random")]
    for batch, found in by_batch.items():
        batches.append((batch, *(f"{found['score'][n]:.2f}" for n in ("hybrid", "random"))))
    checks = [("search", "recorded", "simulated", "builds recorded", "builds simulated")]
    for row in fleet["against_recorded"]:
        parts = ("recorded_seconds", "simulated_seconds", "recorded_build_seconds", "simulated_build_seconds")
        checks.append((row["workload"], *(f"{row[part]:.0f} s" for part in parts)))
    fleets_table, batches_table, checks_table = map(markdown, (rows, batches, checks))
    return fleets_table, batches_table, checks_table


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """A table, the first row being its head."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(what: str = "all") -> None:
    """Does the parts asked for and keeps the others as they are."""
    made = {
        name: {"date": now().isoformat(timespec="seconds"), **part()}
        for name, part in (("fleet", fleet), ("batches", batches))
        if what in (name, "all")
    }
    result = {**(json.loads(RESULT.read_text()) if RESULT.is_file() else {}), **made}
    if what == "tables":
        print("\n\n".join(tables(result)))
        return
    result["environment"] = json.loads(pretty_json(read_environment()))
    RESULT.write_text(pretty_json(result) + "\n")
    if what in ("plot", "all"):
        plot(result)


if __name__ == "__main__":
    main(*sys.argv[1:])
