"""Prints a table of results that `autotune run --json` wrote.

python experiments/table.py RESULT.json...
"""

import json
import sys
from pathlib import Path


def row(path: Path) -> str:
    """One result as a line of a Markdown table."""
    data = json.loads(path.read_text())
    entry = data["entry"]
    binding, unit = (
        (entry["operations"], "TFLOP/s") if entry["operations"] / entry["bytes"] >= 8 else (entry["bytes"], "TB/s")
    )
    library = min(data["library_seconds"].items(), key=lambda item: item[1], default=("none", float("nan")))
    default = data["default_seconds"] or float("nan")
    cells = [
        path.stem,
        f"{binding / entry['seconds'] / 1e12:.4g} {unit}",
        f"{binding / default / 1e12:.4g}",
        f"{library[0]} {binding / library[1] / 1e12:.4g}",
        f"{data['new_trials']}",
        f"{data['search_seconds']:.1f}",
        f"{data['total_seconds']:.1f}",
        f"{data['schedules_per_second']:.1f}",
        " ".join(f"{k}={v}" for k, v in data["statuses"].items()),
        " ".join(f"{k}={v}" for k, v in entry["schedule"].items()),
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Prints the table of the files named on the command line."""
    head = [
        "result",
        "best",
        "default",
        "library",
        "trials",
        "search s",
        "total s",
        "schedules/s",
        "statuses",
        "schedule",
    ]
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for name in sys.argv[1:]:
        try:
            print(row(Path(name)))
        except (ValueError, TypeError, KeyError) as error:
            print(f"| {name} | no result: {error!r} |")


if __name__ == "__main__":
    main()
