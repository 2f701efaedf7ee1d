"""One tuned log of a matrix product on this device, used through TVM Relax, Triton and torch.compile.

python experiments/one_log.py OUT.json [--target llvm|cuda] [--shape M=2048,N=2048,K=2048] [--dtype float16]
                              [--trials N] [--minutes N] [--only triton,inductor,tvm]

Each code generator that a consumer needs is searched once, and the best of each is in one log. The log is exported for
every consumer, and the consumer itself loads the export and runs. Told for each: the configuration that the log holds
and the one that the consumer says that it ran; whether the values are right; and the time of the consumer's kernel
against the tuned schedule's own launch, interleaved, cold L2, together with a second copy of that launch, which shows
the noise, and with the consumer's whole call, which may allocate and is not captured in a graph. Inductor runs its own
kernel with the tuned tile, so that its time may differ. Triton and torch.compile need `--target cuda`.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import numpy as np

from autotune.builders import find_generator
from autotune.checking import Checker
from autotune.devices.base import Device
from autotune.environment import calm_thread_pools, read_environment
from autotune.exporters.inductor import choice, expressible
from autotune.exporting import chosen, export, find_exporter
from autotune.generators.base import BoundLaunch
from autotune.generators.tvm import TvmKernel
from autotune.measurement import Policy
from autotune.race import ratio
from autotune.recall import Winner
from autotune.relax_form import is_scheduled, relax_key, relax_module, same_program
from autotune.reuse.agreement import agrees
from autotune.reuse.inductor import FILE as TABLE
from autotune.reuse.inductor import tuned_table
from autotune.reuse.triton import FILE as CONFIGS
from autotune.reuse.triton import TunedConfigs
from autotune.reuse.tvm import tuned_database
from autotune.task_options import TaskOptions, make_task
from autotune.timing import Timer
from autotune.toolchain import tool_versions
from autotune.tuned_log import Entry, entries_of, write_entries
from autotune.worker import DEVICES
from search_spaces import registry
from search_spaces.errors import AutotuneError
from search_spaces.schedule import Schedule
from search_spaces.sketches.triton.base import TensorArgument, TritonSketch
from search_spaces.sketches.tvm.base import TvmSketch, nodes, tvm_target
from search_spaces.task import Task

ROUNDS = 200
# Two medians so near to each other are equal, as in the race that ends a search.
EQUAL = 0.01
TILE = ("BLOCK_M", "BLOCK_N", "BLOCK_K")
# What the product's kernel lets be tuned.
TUNABLE = (*TILE, "STORE_VECTOR", "group", "columns")
DEFAULTS = {"llvm": ("M=512,N=512,K=512", "float32"), "cuda": ("M=2048,N=2048,K=2048", "float16")}


@dataclass(frozen=True)
class Used:
    """What a consumer made of an export.

    Attributes:
        schedule: The tuned schedule that it was given.
        tuned: The configuration that the log holds, in the consumer's words.
        ran: The one that it ran, as it tells.
        call: Has the consumer compute once; gives its output.
        launch: Launches the consumer's kernel once.
    """

    schedule: Schedule
    tuned: Mapping[str, Any]
    ran: Mapping[str, Any]
    call: Callable[[], Any]
    launch: BoundLaunch


Use = Callable[[Winner, Path, Sequence[Any], Sequence[Any]], Used]


@dataclass(frozen=True)
class Consumer:
    """Who reads an export.

    Attributes:
        sketch: Prefix of the sketches whose schedules it can run.
        kinds: Kinds of targets that it is for.
        use: Loads an export and runs it once.
    """

    sketch: str
    kinds: tuple[str, ...]
    use: Use


def use_tvm(winner: Winner, folder: Path, inputs: Sequence[Any], outputs: Sequence[Any]) -> Used:
    """Relax compiles the product with the database, and its virtual machine runs it."""
    tvm, relax = registry.optional("tvm", "tvm"), registry.optional("tvm.relax", "tvm")
    integration = registry.optional("tvm.s_tir.meta_schedule.relax_integration", "tvm")
    task, target, database = winner.task, tvm_target(winner.task), tuned_database(folder, winner.entry.device.name)
    with target, database:
        applied = relax.get_pipeline("zero")(relax_module(task))
    functions = [(v.name_hint, f) for v, f in applied.functions_items() if isinstance(f, tvm.tirx.PrimFunc)]
    tuned = cast(TvmSketch, task.sketch_of(winner.schedule)).scheduled(task, winner.schedule)
    replayed = tvm.s_tir.Schedule(relax_key(task), seed=1)
    tvm.s_tir.Trace.apply_json_to_schedule(tuned.trace.as_json(), replayed)
    ((name, function),) = functions
    executable = integration.compile_relax(database, relax_module(task), target, params=None)
    machine = relax.VirtualMachine(executable, tvm.cuda() if task.target.kind == "cuda" else tvm.cpu())
    arguments = [tvm.runtime.from_dlpack(array) for array in inputs]
    kernel = TvmKernel({"main": executable.mod.get_function(name, query_imports=True)}, task.target.kind)
    return Used(
        schedule=winner.schedule,
        tuned={"scheduled": True, "program": True, "loops": loops(tuned.mod["main"])},
        ran={
            "scheduled": is_scheduled(function),
            "program": same_program(function, replayed.mod["main"]),
            "loops": loops(function),
        },
        call=lambda: machine["main"](*arguments),
        launch=kernel.bind(inputs, outputs),
    )


def loops(function: Any) -> list[str]:
    """Every loop of a scheduled function: what runs it, and its extent."""
    tirx = registry.optional("tvm.tirx", "tvm")
    found = []
    for loop in nodes(function.body, tirx.For):
        tag = loop.thread_binding.thread_tag if loop.thread_binding is not None else tirx.ForKind(loop.kind).name
        found.append(f"{str(tag).lower()} {int(loop.extent)}")
    return found


def use_triton(winner: Winner, folder: Path, inputs: Sequence[Any], outputs: Sequence[Any]) -> Used:
    """`@triton.autotune` launches the kernel; its own two configurations are none that was tuned."""
    triton = registry.optional("triton", "cuda")
    kernels = registry.optional("search_spaces.kernels.matmul", "cuda")
    task = winner.task
    launch = cast(TritonSketch, task.sketch_of(winner.schedule)).launch(task, winner.schedule)
    configs = TunedConfigs.read(folder / CONFIGS, "matmul", device=winner.entry.device.name)
    dummies = [triton.Config(dict.fromkeys(TUNABLE, value)) for value in (16, 32)]
    tuner = triton.autotune(configs=dummies, key=["M", "N", "K"], **configs.autotune_options())(kernels.tiled)
    names = [t.name for t in task.operator.tensors(task.workload)]
    arrays = dict(zip(names, (*inputs, *outputs), strict=True))
    given = {n: arrays[a.tensor] for n, a in launch.arguments.items() if isinstance(a, TensorArgument)}
    given |= {name: value for name, value in launch.constants.items() if name not in TUNABLE}

    def call() -> Any:
        tuner[launch.grid](**given)
        return outputs[0]

    call()
    scalars = {n: a.value for n, a in launch.arguments.items() if n in TUNABLE and hasattr(a, "value")}
    wanted = {n: v for n, v in launch.constants.items() if n in TUNABLE} | scalars
    best = tuner.best_config
    options = ("num_warps", "num_stages", "maxnreg")
    return Used(
        schedule=winner.schedule,
        tuned={**wanted, **{n: getattr(launch, n) for n in options}},
        ran={**best.kwargs, **{n: getattr(best, n) for n in options}},
        call=call,
        launch=call,
    )


def use_inductor(winner: Winner, folder: Path, inputs: Sequence[Any], outputs: Sequence[Any]) -> Used:
    """`torch.compile` takes the tile from the table; what it ran is read in the code that it generated."""
    del outputs  # the compiled function allocates its own
    torch = registry.optional("torch", "cuda")
    inductor = registry.optional("torch._inductor.config", "cuda")
    utils = registry.optional("torch._inductor.utils", "cuda")
    torch._dynamo.reset()
    compiled = torch.compile(torch.mm, mode="max-autotune-no-cudagraphs", dynamic=False)
    with tuned_table(folder / TABLE), inductor.patch(force_disable_caches=True):
        _, code = utils.run_and_get_code(compiled, *inputs)

    def call() -> Any:
        return compiled(*inputs)

    schedule = expressible(winner)
    assert schedule is not None
    names = (*TILE, "GROUP_M", "num_warps", "num_stages")
    return Used(
        schedule=schedule,
        tuned={name: value for name, value in choice(winner).items() if name in names},
        ran=generated("\n".join(code), names),
        call=call,
        launch=call,
    )


def generated(code: str, names: Sequence[str]) -> dict[str, int]:
    """Constants and options of the kernel in Inductor's code; a name that is not there is left out."""
    found = {name: re.search(rf"\b{name}\s*(?::\s*tl\.constexpr)?\s*=\s*(\d+)", code) for name in names}
    return {name: int(match[1]) for name, match in found.items() if match}


CONSUMERS: Mapping[str, Consumer] = {
    "triton": Consumer("triton.matmul_tiled", ("cuda",), use_triton),
    "inductor": Consumer("triton.matmul_tiled", ("cuda",), use_inductor),
    "tvm": Consumer("tvm.", ("llvm", "cuda"), use_tvm),
}


def tuned_log(task: Task, sketches: Sequence[str], limits: Sequence[str], folder: Path) -> Path:
    """Searches each of `sketches`, and writes the best of each to one log; a search that fails adds nothing."""
    entries: list[Entry] = []
    for number, sketch in enumerate(sketches):
        axes = ",".join(f"{name}={extent}" for name, extent in task.workload.axes)
        named = ["--op", "matmul", "--target", str(task.target), "--shape", axes, "--dtype", task.workload.dtype]
        out = folder / f"run-{number}"
        command = [sys.executable, "-m", "autotune", "run", *named, "--sketch", sketch, "--out", str(out), "--quiet"]
        done = subprocess.run([*command, "--mlflow", "none", *limits], check=False, stdout=sys.stderr)
        entries += entries_of(out) if done.returncode == 0 else []
    path = folder / "tuned-log.json"
    write_entries(path, entries)
    return path


def compared(name: str, log: Path, device: Device, task: Task, folder: Path) -> dict[str, Any]:
    """Has a consumer use the log, and races it against the tuned schedule's own launch."""
    entries = entries_of(log)
    export(entries, name, folder / name)
    (winner,) = chosen(entries, find_exporter(name)).winners
    checker = Checker(device, task, Policy())
    used = CONSUMERS[name].use(winner, folder / name, checker.inputs, checker.outputs)
    right = agrees(task, device.namespace, checker.inputs, [device.namespace.from_dlpack(used.call())])
    generator = find_generator(task.sketch_of(used.schedule).generator)
    artifact = generator.build(task, used.schedule, folder)
    kernel = generator.load(task, used.schedule, artifact, folder)
    launches: dict[str, BoundLaunch] = {
        "consumer": used.launch,
        "tuned": checker.bind(kernel),
        "tuned again": checker.bind(kernel),
    }
    alone = [launches["tuned"], *([used.launch] if used.launch is not used.call else [])]
    faults = [verdict.fault for verdict in map(checker.check, alone) if verdict.fault]
    timer = Timer(device, Policy(), task.written_bytes)
    # As graphs where there are such, so that nobody's way of launching is timed; the consumer's own way beside them.
    contestants = [*(device.compact(launch) for launch in launches.values()), used.call]
    for contestant in contestants:
        contestant()
    times = timer.rounds(contestants, ROUNDS, seed=0)
    of = dict(zip((*launches, "consumer's call"), times, strict=True))
    against, noise = ratio(of["consumer"], of["tuned"]), ratio(of["tuned again"], of["tuned"])
    return {
        "schedule": dict(used.schedule.items),
        "tuned": used.tuned,
        "ran": used.ran,
        "same_configuration": used.tuned == used.ran,
        "right": right and not faults,
        "median_us": {who: float(np.median(t)) * 1e6 for who, t in of.items()},
        "consumer_over_tuned": [against.times, against.low, against.high],
        "tuned_over_itself": [noise.times, noise.low, noise.high],
        "same_time": against.low <= 1.0 + EQUAL and against.high >= 1.0 - EQUAL,
    }


def left_out(name: str, kind: str) -> str | None:
    """Why a consumer cannot take part, None where it can."""
    if kind not in CONSUMERS[name].kinds:
        return f"it is for {' and '.join(CONSUMERS[name].kinds)}, not for {kind}"
    return find_exporter(name).missing()


def main() -> None:
    """Tunes, lets every consumer use the log, and keeps each finished one at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--target", choices=list(DEFAULTS), default="llvm")
    parser.add_argument("--shape", default="")
    parser.add_argument("--dtype", default="")
    parser.add_argument("--trials", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--only", default=",".join(CONSUMERS))
    given = parser.parse_args()
    calm_thread_pools()
    shape, dtype = DEFAULTS[given.target]
    task = make_task(
        TaskOptions("matmul", given.target, None, given.shape or shape, given.dtype or dtype), measure_roof=False
    )
    limits = [w for n in ("trials", "minutes") if getattr(given, n) for w in (f"--{n}", str(getattr(given, n)))]
    reasons = {name: left_out(name, given.target) for name in given.only.split(",")}
    taking_part = [name for name, reason in reasons.items() if reason is None]
    device: Device = registry.find("autotune.devices", DEVICES[given.target], "device")()
    about: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device.info().name,
        "workload": str(task.workload),
        "target": str(task.target),
        "rounds": ROUNDS,
        "left_out": {name: reason for name, reason in reasons.items() if reason is not None},
    }
    environment = read_environment(tool_versions(task))
    about |= {"versions": dict(environment.versions), "system": environment.system}
    consumers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        sketches = list(dict.fromkeys(CONSUMERS[name].sketch for name in taking_part))
        log = tuned_log(task, sketches, limits, Path(scratch))
        about["entries"] = [{"schedule": dict(e.schedule), "seconds": e.seconds} for e in entries_of(log)]
        for name in taking_part:
            try:
                consumers[name] = compared(name, log, device, task, Path(scratch))
            except AutotuneError as error:
                about["left_out"][name] = str(error)
                continue
            print(name, json.dumps({k: v for k, v in consumers[name].items() if k != "schedule"}), flush=True)
            given.out.write_text(json.dumps({**about, "consumers": consumers}, indent=1) + "\n")
    given.out.write_text(json.dumps({**about, "consumers": consumers}, indent=1) + "\n")
    for name, reason in about["left_out"].items():
        print(f"left out: {name}: {reason}")


if __name__ == "__main__":
    main()
