"""Trials a minute of one device and of all devices of a machine, on the same spaces for the same time.

python experiments/devices_scale.py MINUTES OUT.json [SPACE...]

Each space is tuned with `--devices 0` and with `--devices all`, one after the other; the pace is that from the first
trial to the last, and what was found is told as the race's winner against the untuned default. Where kernels take long
the devices bound the pace, where they are short the builders do, which all devices share.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.clock import now
from autotune.display import pretty_json
from autotune.journal import read_journal
from autotune.records import DeviceRecord, RaceRecord, RunRecord, TrialRecord

SPACES = {
    "matmul 4096": ["--op", "matmul", "--shape", "M=4096,N=4096,K=4096"],
    "softmax": ["--op", "softmax"],
    "matmul 8192": ["--op", "matmul", "--shape", "M=8192,N=8192,K=8192"],
    "attention": ["--op", "attention", "--shape", "B=4,H=32,S=4096,D=128,causal=0"],
}
MOST_TRIALS = 100_000


def tuned(space: str, devices: str, minutes: float, folder: Path) -> dict[str, Any]:
    """One run: its pace, what each device did, and the winner."""
    words = ["run", *SPACES[space], "--dtype", "float16", "--target", "cuda", "--devices", devices]
    words += ["--minutes", str(minutes), "--trials", str(MOST_TRIALS), "--out", str(folder), "--mlflow", "none"]
    done = subprocess.run(
        [sys.executable, "-m", "autotune", *words, "--quiet", "--json"], stdout=subprocess.PIPE, check=True, text=True
    )
    result = json.loads(done.stdout)
    records = list(read_journal(folder))
    trials = [r for r in records if isinstance(r, TrialRecord)]
    run = next(r for r in records if isinstance(r, RunRecord))
    race = next((r for r in records if isinstance(r, RaceRecord)), None)
    seconds = trials[-1].at - trials[0].at
    return {
        "trials": len(trials),
        "first_trial_at": trials[0].at,
        "trials_a_minute": 60.0 * (len(trials) - 1) / seconds,
        "device": run.device.name,
        "build_seconds": result["build_seconds"],
        "device_seconds": result["device_seconds"],
        "measured_by": Counter(t.device for t in trials if t.device),
        "compared": [r for r in records if isinstance(r, DeviceRecord)],
        "seconds": result["entry"]["seconds"],
        "default_seconds": result["default_seconds"],
        "over_default": race.over_default if race is not None else None,
    }


def main(minutes: float, out: Path, spaces: Sequence[str]) -> None:
    """Runs all, writes the file and prints a table."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for space in spaces or SPACES:
            one, all_ = (tuned(space, d, minutes, Path(scratch, f"{space}-{d}")) for d in ("0", "all"))
            times = all_["trials_a_minute"] / one["trials_a_minute"]
            found[space] = {"one": one, "all": all_, "times": times}
            print(
                f"{space}: {one['trials_a_minute']:.0f} trials a minute on one, {all_['trials_a_minute']:.0f} on "
                f"{len(all_['measured_by'])}: {times:.2f} times; winners {one['seconds']:.4g} s and "
                f"{all_['seconds']:.4g} s"
            )
    out.write_text(
        pretty_json({"date": now().isoformat(timespec="seconds"), "minutes": minutes, "spaces": found}) + "\n"
    )


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
