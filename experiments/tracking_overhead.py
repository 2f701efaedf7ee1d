"""What logging to MLflow costs a tuning run: the same run with a SQLite store and without, in turns.

    python experiments/tracking_overhead.py [REPEATS [TRIALS]]

Results of other numbers of trials stay in the file.

A run's own processes (search, builders, worker) and the process beside it that logs are told apart by who started them.
Seconds of the processor say what was done whatever else the machine does; the search's own share of the clock says what
the run waited. Writes results/tracking_overhead.json.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path

import psutil
from noise.recorded import RESULTS, write_result

from autotune.clock import monotonic, now
from autotune.environment import read_environment
from autotune.journal import read_journal
from autotune.records import TrialRecord

REPEATS, TRIALS = 6, 200
RESULT = RESULTS / "tracking_overhead.json"
_TURN = 0.2


class Processors:
    """Processor seconds of a process and its descendants, by whether they log; sampled until `stop`."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._seconds: dict[tuple[int, float], tuple[bool, float]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()

    def _sample(self) -> None:
        followers = dict[int, psutil.Process]()
        while not self._ended.wait(_TURN):
            for process in [self._process, *self._descendants(self._process), *followers.values()]:
                try:
                    logs = process.pid in followers or "sync" in process.cmdline()
                    times = process.cpu_times()
                    key = process.pid, process.create_time()
                except psutil.Error:
                    continue
                if logs:
                    followers[process.pid] = process
                self._seconds[key] = logs, times.user + times.system

    def _descendants(self, process: psutil.Process) -> list[psutil.Process]:
        try:
            return process.children(recursive=True)
        except psutil.Error:
            return []

    def stop(self) -> tuple[float, float]:
        """Seconds of the run and of what logs it."""
        self._ended.set()
        self._thread.join()
        logging = sum(seconds for logs, seconds in self._seconds.values() if logs)
        return sum(seconds for _, seconds in self._seconds.values()) - logging, logging


def measured(store: bool, trials: int, number: int) -> Mapping[str, float]:
    """One run, and what it took."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch, "run")
        words = [sys.executable, "-m", "autotune", "run", "--op", "matmul", "--target", "llvm"]
        words += [
            "--shape",
            "M=256,N=256,K=256",
            "--strategy",
            "random",
            "--trials",
            str(trials),
            "--seed",
            str(number),
        ]
        words += ["--out", str(out), "--quiet", "--mlflow", f"sqlite:///{scratch}/mlflow.db" if store else "none"]
        start = monotonic()
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        processors = Processors(psutil.Process(process.pid))
        if process.wait():
            raise SystemExit(f"a run ended with code {process.returncode}")
        wall = monotonic() - start
        own, logging = processors.stop()
        last = max(record.at for record in read_journal(out) if isinstance(record, TrialRecord))
    return {"wall": wall, "search": last, "own_cpu": own, "logging_cpu": logging}


def main(repeats: int, trials: int) -> None:
    """Measures in pairs of one seed, the first of a pair changing."""
    found: dict[bool, list[Mapping[str, float]]] = {True: [], False: []}
    for number in range(repeats):
        for store in ((False, True), (True, False))[number % 2]:
            found[store].append(measured(store, trials, number))
            print(store, found[store][-1], flush=True)
    # By pairs, as the seeds' schedules take unlike times.
    more = {
        key: statistics.median(w[key] / o[key] - 1 for w, o in zip(found[True], found[False], strict=True))
        for key in ("wall", "search", "own_cpu")
    }
    made = {
        "date": now().isoformat(timespec="seconds"),
        "environment": read_environment({}).versions,
        "with": found[True],
        "without": found[False],
        "more": more,
        "logging_cpu_seconds": statistics.median(row["logging_cpu"] for row in found[True]),
    }
    kept = json.loads(RESULT.read_text())["by_trials"] if RESULT.is_file() else {}
    write_result(RESULT.stem, {"by_trials": {**kept, str(trials): made}})


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    main(*(given + [REPEATS, TRIALS][len(given) :]))
