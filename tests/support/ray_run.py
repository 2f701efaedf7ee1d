"""A run of the recorded device on a Ray cluster: FOLDER ADDRESS NODES TRIALS STRATEGY; a line for each trial."""

import sys
import time
from pathlib import Path

from autotune.executors.base import Site
from autotune.executors.ray import connected
from search_spaces.errors import AutotuneError
from search_spaces.registry import load_file


class Teller:
    def measured(self, measurement, done, budget):
        print(f"trial {done} {measurement.status} {measurement.device}", flush=True)

    def waiting(self, done, budget):
        pass

    def notice(self, line):
        print(f"notice {line}", flush=True)


if __name__ == "__main__":
    folder, address, nodes, trials, strategy = sys.argv[1:]
    site = Site("ray", address)
    ray = connected(site)
    until = time.monotonic() + 120
    while sum(node["Alive"] for node in ray.nodes()) < int(nodes) and time.monotonic() < until:
        time.sleep(0.2)
    print("joined", flush=True)
    recorded = load_file(Path(__file__).parent / "recorded.py")
    try:
        recorded.tune_recorded(folder, int(trials), strategy, trackers=[Teller()], site=site)
    except AutotuneError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    print("ended", flush=True)
