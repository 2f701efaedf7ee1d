"""Makes the recordings of others in experiments/spaces from a folder of replay tables with their manifest.

The table of a space whose raw repeats are at hand, as `original/*.kernel_tuner_cache.json.gz`, is replaced by them.

    python experiments/import_spaces.py FOLDER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.recordings.finding import read_recording
from autotune.recordings.native import SUFFIX, write_recording

SPACES = Path(__file__).parent / "spaces"
CITATION = (
    'Willemsen, van Nieuwpoort, van Werkhoven, "FAIR Benchmark Hub for Auto-Tuning" (2025), '
    'doi:10.5281/zenodo.15364124; measurements from Lurati et al., "Bringing Auto-Tuning to HIP" (Euro-Par 2024, '
    "doi:10.5281/zenodo.11617999) and the Kernel Tuner authors"
)


def origin(entry: Mapping[str, Any]) -> dict[str, str]:
    """What a reader should know of where a space is from."""
    return {
        "source": f"{entry['source_repo']}, {entry['source_path']}",
        "commit": entry["source_commit"],
        "date": "2025-05-24",
        "licence": "MIT, (c) 2025 AutoTuningAssociation",
        "citation": CITATION,
        "problem": json.dumps(entry["problem_size"]),
        "constants": json.dumps(entry["constants"]),
    }


def main(folder: Path) -> None:
    """Writes a recording for every space of the manifest."""
    caches = {}
    for path in sorted((folder / "original").glob("*.kernel_tuner_cache.json.gz")):
        cache = read_recording(path)
        caches[cache.kernel, cache.device] = cache
    for entry in json.loads((folder / "manifest.json").read_text()):
        if "counters" in entry["file"]:
            continue
        made = read_recording(folder / entry["file"])
        raw = caches.get((made.kernel, made.device))
        if raw is not None and set(raw.space.schedules) == set(made.space.schedules):
            made = replace(raw, name=made.name)
        write_recording(replace(made, provenance=origin(entry)), SPACES / f"{made.name}{SUFFIX}")
        print(f"{made.name}: {len(made.status)} schedules on {made.device}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
