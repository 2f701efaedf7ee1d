"""Kernels found by this tuner and by Helion at its quick effort on this GPU, each by default, raced against each other.

python experiments/helion_quick.py OUT.json [--only NAME,...]

For each workload both tune from nothing that was measured here, one after the other, this tuner with the prior that it
ships. Wall-clock seconds are of the whole of it: of this tuner from the start of its process to the verified log, of
Helion from the first call to the first result. Then both kernels and the library's are timed in one process,
interleaved, cold L2. Needs `pip install helion`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

import autotune
from autotune.devices.cuda import Cuda
from autotune.environment import read_environment
from autotune.measurement import Policy
from autotune.race import ratio
from autotune.task_options import TaskOptions, make_task
from autotune.timing import Timer
from search_spaces.registry import optional

# Before Helion is imported: what was tuned before must not be taken.
os.environ["HELION_SKIP_CACHE"] = "1"
os.environ.setdefault("HELION_AUTOTUNE_EFFORT", "quick")
kernels = optional("autotune.benchmark.helion_kernels", "rivals")
ROUNDS = 200


@dataclass(frozen=True)
class Case:
    """What both tune.

    Attributes:
        operator: Its name here.
        shape: Its axes here, as on the command line.
        theirs: Helion's kernel of the same inputs.
        view: Makes Helion's inputs of ours.
    """

    operator: str
    shape: str
    theirs: Callable[..., torch.Tensor]
    view: Callable[[torch.Tensor], torch.Tensor] = lambda tensor: tensor


CASES: Mapping[str, Case] = {
    "matmul_4096_fp16": Case("matmul", "M=4096,N=4096,K=4096", kernels.matmul),
    "softmax_16384x4096_fp16": Case("softmax", "M=16384,N=4096", kernels.softmax),
    "attention_b4h32s4096d128_fp16": Case(
        "attention", "B=4,H=32,S=4096,D=128", kernels.attention, lambda tensor: tensor.flatten(0, 1)
    ),
}


def our_kernel(
    case: Case, folder: Path, inputs: list[torch.Tensor]
) -> tuple[Callable[[], object], torch.Tensor, float]:
    """A launch of our winner, its output, and the wall-clock seconds of finding it."""
    start = time.monotonic()
    command = ["run", "--op", case.operator, "--shape", case.shape, "--dtype", "float16", "--target", "cuda"]
    arch = "-arch=sm_{}{}".format(*torch.cuda.get_device_capability())
    subprocess.run([sys.executable, "-m", "autotune", *command, arch, "--out", str(folder), "--quiet"], check=True)
    seconds = time.monotonic() - start
    kernel = autotune.load(folder).kernel(
        case.operator, *inputs, **({"causal": 0} if case.operator == "attention" else {})
    )
    output = torch.empty_like(inputs[0])
    return kernel.bind(inputs, [output]), output, seconds


def compare(case: Case, folder: Path) -> dict[str, Any]:
    """Tunes with both and races what they found.

    Raises:
        RuntimeError: The two do not compute the same.
    """
    task = make_task(TaskOptions(case.operator, "cuda", None, case.shape, "float16"), measure_roof=False)
    specs = [t for t in task.operator.tensors(task.workload) if not t.output]
    inputs = [torch.randn(t.shape, device="cuda", dtype=torch.float16) for t in specs]
    ours, output, our_seconds = our_kernel(case, folder, inputs)
    viewed = [case.view(i) for i in inputs]
    start = time.monotonic()
    theirs = case.theirs(*viewed)
    torch.cuda.synchronize()
    their_seconds = time.monotonic() - start
    ours()
    difference = float((theirs.view_as(output).float() - output.float()).abs().max())
    if not difference < 2e-2 * float(output.float().abs().max()):
        raise RuntimeError(f"the kernels differ by {difference:.3g}")
    device = Cuda()
    timer = Timer(device, Policy(), task.written_bytes)
    library = device.library(task, inputs, [output])
    launches = {"ours": ours, "helion": lambda: case.theirs(*viewed), **library}
    times = timer.rounds([timer.ready(launch) for launch in launches.values()], ROUNDS, seed=0)
    of = dict(zip(launches, times, strict=True))
    work = task.operator.cost(task.workload)
    found = ratio(of["helion"], of["ours"])
    return {
        "seconds_to_tune": {"ours": our_seconds, "helion": their_seconds},
        "helion_config": str(case.theirs.bind(tuple(viewed))._config),
        "our_schedule": str(autotune.load(folder).entries[0].schedule),
        "median_us": {name: sorted(t)[len(t) // 2] * 1e6 for name, t in of.items()},
        "operations": work.operations,
        "bytes": work.bytes,
        "helion_over_ours": [found.times, found.low, found.high],
    }


def main() -> None:
    """Compares what was named, keeping each finished case at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    found: dict[str, Any] = {}
    for name in options.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = compare(CASES[name], Path(folder) / "run")
        print(name, json.dumps(found[name]), flush=True)
        environment = read_environment()
        about = {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "device": torch.cuda.get_device_name(),
            "helion": version("helion"),
            "effort": os.environ["HELION_AUTOTUNE_EFFORT"],
            "versions": dict(environment.versions),
            "system": environment.system,
            "rounds": ROUNDS,
        }
        options.out.write_text(json.dumps({**about, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
