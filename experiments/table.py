"""Prints results that `autotune run --json` wrote as a Markdown table; the README's is made by this.

python experiments/table.py experiments/results/h200/*.json
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HEAD = (
    "workload",
    "best",
    "over the untuned default",
    "over the library",
    "trials",
    "search",
    "trials a second",
    "date",
)


def ratio(data: Mapping[str, float] | None) -> str:
    """A speed-up with its 95 % interval."""
    return "-" if data is None else f"{data['times']:.3f}x ({data['low']:.3f} to {data['high']:.3f})"


def cells(data: Mapping[str, object]) -> list[str]:
    """One result, a cell for each of HEAD."""
    entry = data["entry"]
    work = entry["task"]["workload"]
    bound, unit = (
        (entry["operations"], "TFLOP/s") if entry["operations"] / entry["bytes"] >= 8 else (entry["bytes"], "TB/s")
    )
    axes = " ".join(f"{name}{value}" for name, value in work["axes"])
    return [
        f"{work['operator']} {axes} {work['dtype']}",
        f"{bound / entry['seconds'] / 1e12:.4g} {unit}",
        ratio(entry["over_default"]),
        f"{entry['library']} {ratio(entry['over_library'])}",
        str(data["new_trials"]),
        f"{data['search_seconds']:.1f} s",
        f"{data['schedules_per_second']:.1f}",
        str(data["finished"])[:10],
    ]


def table(paths: Sequence[Path]) -> str:
    """The table of several results, with a line that names their device above it."""
    results = [json.loads(path.read_text()) for path in sorted(paths)]
    devices = sorted({r["entry"]["device"]["name"] for r in results})
    rows = [HEAD, ("---",) * len(HEAD), *(cells(r) for r in results)]
    return "\n".join([f"{', '.join(devices)}:", "", *("| " + " | ".join(row) + " |" for row in rows)])


if __name__ == "__main__":
    print(table([Path(name) for name in sys.argv[1:]]))
