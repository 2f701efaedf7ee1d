"""What searches cost beside their trials, from runs: python experiments/fleet_overheads.py FOLDER... [--out FILE].

Each FOLDER is that of a run of one device, and FOLDER.json what `autotune run --json` printed of it. What a schedule
costs the strategy is taken from results/search_scale.json, what the journal takes is tried here. FILE is by default the
one that `autotune plan` comes with.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.clock import monotonic, now
from autotune.display import pretty_json
from autotune.journal import Journal, read_journal
from autotune.planning.overheads import SHIPPED, Overheads
from autotune.records import RunRecord, TrialRecord

HERE = Path(__file__).parent
WRITES = 2000


def spent(folder: Path) -> Mapping[str, float]:
    """Seconds until the first candidate was asked for, and from the last trial to the end."""
    result = json.loads(folder.with_suffix(".json").read_text())
    trials = [r for r in read_journal(folder) if isinstance(r, TrialRecord)]
    first = min(r.at - r.phases.build - r.phases.check - r.phases.measure for r in trials)
    return {"start": max(0.0, first), "final": result["total_seconds"] - result["search_seconds"]}


def devices(folders: Sequence[Path]) -> str:
    """What the runs were measured on."""
    runs = [r for folder in folders for r in read_journal(folder) if isinstance(r, RunRecord)]
    return ", ".join(sorted({run.device.name for run in runs}))


def written(folder: Path) -> float:
    """Seconds that the journal takes for a trial of a run."""
    record = next(r for r in read_journal(folder) if isinstance(r, TrialRecord))
    with tempfile.TemporaryDirectory() as scratch, Journal(Path(scratch, "run")) as file:
        started = monotonic()
        for _ in range(WRITES):
            file.append(record)
        return (monotonic() - started) / WRITES


def main(folders: Sequence[Path], out: Path) -> None:
    """Writes the file and prints it."""
    found = [spent(folder) for folder in folders]
    scale = json.loads((HERE / "results" / "search_scale.json").read_text())
    made = Overheads(
        start=statistics.median(f["start"] for f in found),
        suggest=scale["speed"]["hybrid"]["batch 8"]["both_ms"] / 1e3,
        record=written(folders[0]),
        final=statistics.median(f["final"] for f in found),
        date=now().isoformat(timespec="seconds"),
        device=devices(folders),
        sources={
            "start, final": f"medians of the runs {', '.join(folder.name for folder in folders)}",
            "suggest": f"hybrid over {scale['trials']} trials, batches of 8, {scale['date']}",
            "record": f"{WRITES} records",
        },
    )
    out.write_text(pretty_json(made) + "\n")
    print(pretty_json(made))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=SHIPPED)
    main(**vars(parser.parse_args()))
