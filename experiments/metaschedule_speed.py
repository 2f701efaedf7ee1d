"""Times 64 trials of this tuner and of TVM's MetaSchedule on the same matmul and the same CPU.

python experiments/metaschedule_speed.py [OUT.json]

Both start from nothing, each in a process of its own, one after the other; the ratio of their wall times and both
results go to standard output and, where OUT is given, into that file.
"""

import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from autotune.devices.cpu import cpu_info, usable_cores
from autotune.environment import calm_thread_pools, read_environment

SIZE = 512
TRIALS = 64


def metaschedule(work: Path) -> float:
    """Best seconds that MetaSchedule finds in TRIALS trials with its own builder and runner."""
    import numpy as np
    import tvm
    from tvm import te
    from tvm.s_tir import meta_schedule as ms

    a, b = te.placeholder((SIZE, SIZE), name="A"), te.placeholder((SIZE, SIZE), name="B")
    k = te.reduce_axis((0, SIZE), name="k")
    c = te.compute((SIZE, SIZE), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    database = ms.tune_tir(
        mod=te.create_prim_func([a, b, c]),
        target=tvm.target.Target({"kind": "llvm", "mcpu": cpu, "num-cores": usable_cores()}),
        work_dir=str(work),
        max_trials_global=TRIALS,
        num_trials_per_iter=32,
        seed=1,
    )
    records = [r.run_secs for r in database.get_all_tuning_records() if r.run_secs]
    return min(float(np.mean([float(s) for s in seconds])) for seconds in records)


def ours(folder: Path) -> dict[str, object]:
    """The command line's own result for the same task."""
    shape = f"M={SIZE},N={SIZE},K={SIZE}"
    command = [sys.executable, "-m", "autotune", "run", "--op", "matmul", "--target", "llvm", "--shape", shape]
    command += ["--dtype", "float32", "--trials", str(TRIALS), "--out", str(folder), "--json", "--quiet"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    """Runs both and prints the comparison."""
    calm_thread_pools()
    with tempfile.TemporaryDirectory() as scratch:
        started = time.monotonic()
        result = ours(Path(scratch) / "ours")
        our_seconds = time.monotonic() - started
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, __file__, "--metaschedule", scratch], check=True, capture_output=True, text=True
        )
        their_seconds = time.monotonic() - started
    their_best = float(done.stdout.strip().splitlines()[-1])
    entry = result["entry"]
    operations = entry["operations"]
    report = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": vars(cpu_info()),
        "environment": vars(read_environment()),
        "task": f"matmul {SIZE} cubed float32, {TRIALS} trials, llvm",
        "ours": {
            "wall_seconds": our_seconds,
            "best_gflops": operations / entry["seconds"] / 1e9,
            "over_default": entry["over_default"],
            "over_numpy": entry["over_library"],
        },
        "metaschedule": {"wall_seconds": their_seconds, "best_gflops": operations / their_best / 1e9},
        "time_ratio": our_seconds / their_seconds,
    }
    text = json.dumps(report, indent=2)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    if "--metaschedule" in sys.argv:
        print(metaschedule(Path(sys.argv[-1]) / "metaschedule"))
    else:
        main()
