"""How long a journal of up to a million trials takes to open, and in how much memory, before and after `compact`.

The journals are made up of a recorded space: its schedules, statuses, samples and phases in turn, each schedule made
another one by a knob that counts the rounds, with what a GPU tells of itself beside it. Each reader has a process of
its own.

    python experiments/journal_scale.py [TRIALS...]

Seconds are CPU seconds of the process from its start, imports included, so that other work on the machine changes them
little; wall seconds stand beside them. Memory is the most that the process held, that of the imports with it.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from noise.recorded import write_result

from autotune.clock import now
from autotune.devices.base import DeviceInfo
from autotune.devices.telemetry import Conditions
from autotune.environment import read_environment
from autotune.generators.base import Resources
from autotune.journal import Journal
from autotune.measurement import Measurement, Phases, Policy, Status
from autotune.recordings.finding import read_recording
from autotune.recordings.recording import Recording
from autotune.records import SCHEMA, RaceRecord, Ratio, RunRecord, TaskData, TrialRecord
from autotune.segments import disk_bytes
from search_spaces.operator import Workload
from search_spaces.schedule import digest
from search_spaces.space import Schedule

SPACE = Path(__file__).parent / "spaces" / "h200" / "matmul__h200__m4096-n4096-k4096-float16.recording.gz"
COUNTS = (10_000, 100_000, 1_000_000)
MOST_BYTES = 6 << 30
MOST_SECONDS = 900
MOST_REPORTED = 100_000
# What each reader does, as a user would have it done.
READERS = {
    "imports": "import autotune.tune, autotune.trial_table",
    "open": "from autotune.journal import load_runs; load_runs(run)",
    "best": "from autotune.tuned_log import entries_of; entries_of(run)",
    "show": "from autotune.commands.show import command; command.main([str(run)], standalone_mode=False)",
    "watch": "from autotune.watching import Watched; Watched(run).read()",
    "resume": (
        "import autotune.tune; from autotune.journal import load_runs; (log,) = load_runs(run); "
        "seconds = log.trials.seconds.tolist(); "
        "known = [(t.schedule, s, t.binary) for t, s in zip(log.trials.values(), seconds)]"
    ),
    "frame": "from autotune.trial_table import frame; frame(run)",
    "report": "from autotune.reporting.report import report; from autotune.reporting.study import studies; "
    "report(studies(run))",
}
MEASURE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, ({most}, {most}))
from pathlib import Path
run = Path(sys.argv[1])
{code}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""


def trials(recording: Recording, count: int) -> Iterator[TrialRecord]:
    """So many trials, each of another schedule."""
    rows = len(recording.space.schedules)
    for number in range(count):
        row, cycle = number % rows, number // rows
        schedule = Schedule((*recording.space.schedules[row].items, ("cycle", cycle)))
        phases = Phases(*(float(recording.phases[name][row]) for name in ("build", "check", "measure")))
        ran = recording.status[row] is Status.OK
        measured = Measurement(
            schedule,
            recording.status[row],
            tuple((recording.samples[row] * (1.0 + 1e-6 * cycle)).tolist()) if ran else (),
            "" if ran else "the compiler refused it",
            error=0.25 if ran else None,
            resources=Resources(128, 96 << 10, 0, 256),
            binary=schedule.key,
            phases=phases,
            deterministic=ran or None,
            conditions=Conditions(1980, 3201, 512.3, 51) if ran else None,
        )
        yield TrialRecord.of("run", number, 0.1 * number, measured, "order", 1e-3)


def run_record(recording: Recording, count: int) -> RunRecord:
    """What starts the run."""
    workload = recording.workload or Workload("made", (("M", 4096),), "float16")
    task = TaskData(workload.operator, workload, recording.target, (), digest([str(workload)]), recording.name)
    return RunRecord(
        schema=SCHEMA,
        run="run",
        started=now().isoformat(timespec="seconds"),
        task=task,
        device=DeviceInfo("cuda", recording.device, "sm_90", 132, 150 << 30, "580.1", 60 << 20),
        foreign=False,
        environment=read_environment(),
        policy=Policy(),
        strategy="random",
        seed=0,
        trials=count,
        minutes=None,
        floor_seconds=recording.optimum * 0.7,
        operations=2.0 * 4096**3,
        bytes=6.0 * 4096**2,
    )


def write(folder: Path, recording: Recording, count: int) -> float:
    """Makes the journal; bytes of lines a trial."""
    fastest = int(np.argmin(recording.seconds))
    winner = dict(Schedule((*recording.space.schedules[fastest].items, ("cycle", 0))).items)
    samples = tuple(recording.samples[fastest].tolist())
    first = dict(Schedule((*recording.space.schedules[0].items, ("cycle", 0))).items)
    with Journal(folder) as journal:
        journal.append(run_record(recording, count))
        for record in trials(recording, count):
            journal.append(record)
        race = (winner, first), (samples, tuple(2.0 * s for s in samples)), {}
        journal.append(RaceRecord("run", winner, first, *race, Ratio(2.0, 2.0, 2.0), None, 0))
    return disk_bytes(folder / "journal.jsonl") / count


def measured(code: str, run: Path) -> dict[str, object]:
    """What a reader took, or that it did not end within its limits."""
    words = [sys.executable, "-c", MEASURE.format(most=MOST_BYTES, code=code), str(run)]
    begun = now()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {MOST_SECONDS} s"}
    if done.returncode:
        return {"failed": f"in {MOST_BYTES >> 30} GiB: {done.stderr.strip().splitlines()[-1]}"}
    cpu, mib = map(float, done.stdout.split()[-2:])
    wall = (now() - begun).total_seconds()
    return {"cpu_seconds": round(cpu, 2), "wall_seconds": round(wall, 2), "peak_mib": round(mib)}


def readers(count: int) -> dict[str, str]:
    """The readers of a journal of so many trials: a report holds all of them, and is for runs that people look at."""
    return {name: code for name, code in READERS.items() if name != "report" or count <= MOST_REPORTED}


def sizes(count: int, recording: Recording, scratch: Path) -> dict[str, object]:
    """A journal of so many trials, written, read by all, packed and read again."""
    run = scratch / str(count)
    found: dict[str, object] = {"bytes_a_trial": round(write(run, recording, count))}
    found["written"] = {name: measured(code, run) for name, code in readers(count).items()}
    compacting = "from autotune.journal import Journal; journal = Journal(run); journal.compact(); journal.close()"
    found["compact"] = measured(compacting, run)
    found["packed_bytes_a_trial"] = round(disk_bytes(run / "journal.jsonl") / count)
    found["packed"] = {name: measured(code, run) for name, code in readers(count).items()}
    return found


def main(*counts: str) -> None:
    """Measures the sizes asked for and writes the result."""
    recording = read_recording(SPACE)
    result: dict[str, object] = {
        "question": "how long a journal takes to open, and in how much memory, before and after compact",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "msgspec": msgspec.__version__,
        "processor": platform.processor() or platform.machine(),
        "recording": recording.name,
    }
    for count in map(int, counts or COUNTS):
        with tempfile.TemporaryDirectory() as scratch:
            result[f"{count} trials"] = sizes(count, recording, Path(scratch))
        print(json.dumps(result[f"{count} trials"]), file=sys.stderr)
    write_result("journal_scale", result)


if __name__ == "__main__":
    main(*sys.argv[1:])
