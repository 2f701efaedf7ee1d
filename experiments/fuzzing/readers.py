"""Every reader of files from strangers, each with a whole file that it reads."""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.exporters.wisdom import chosen as wisdom_choice
from autotune.exporting import export
from autotune.importing import proposals_in, read_foreign
from autotune.journal import load_runs
from autotune.policy.policy import Policy
from autotune.prior.prior import Prior
from autotune.recall import recall
from autotune.recordings.finding import read_recording
from autotune.recordings.native import SUFFIX
from autotune.recordings.t1 import read_t1
from autotune.reuse.artifact import FILE as ARTIFACT
from autotune.reuse.artifact import read_artifact
from autotune.reuse.inductor import FILE as TABLE
from autotune.reuse.inductor import read_table
from autotune.reuse.triton import FILE as CONFIGS
from autotune.reuse.triton import read_configs
from autotune.tuned_log import read_tuned_log, write_entries
from autotune.warm_start import Proposal, read_warm_start, write_warm_start
from search_spaces.registry import load_file

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "tests" / "support"


@dataclass(frozen=True)
class Reader:
    """A reader.

    Attributes:
        file: The file's name, which some readers go by.
        whole: Writes a file that the reader reads to a folder and gives its bytes.
        read: Reads the file at a path.
        share: Of the inputs that a reader usually gets; less where one takes long.
    """

    file: str
    whole: Callable[[Path], bytes]
    read: Callable[[Path], object]
    share: float = 1.0


@functools.cache
def _tuned() -> Any:
    return load_file(SUPPORT / "tuned.py")


def _entries() -> list[Any]:
    tuned = _tuned()
    return [
        tuned.entry_on(tuned.CPU, "matmul", "tvm.matmul_packed", axes={"M": 64, "N": 64, "K": 64}),
        tuned.entry_on(tuned.H200, "softmax", "triton.softmax_rows", axes={"M": 64, "N": 128}),
    ]


def _tuned_log(folder: Path) -> bytes:
    write_entries(folder / "log.json", _entries())
    return (folder / "log.json").read_bytes()


def _recalled(path: Path) -> None:
    for entry in read_tuned_log(path).entries:
        recall(entry)


def _exported(form: str, file: str) -> Callable[[Path], bytes]:
    def write(folder: Path) -> bytes:
        tuned = _tuned()
        axes = {"M": 256, "N": 128, "K": 64}
        task = tuned.task_on(tuned.H200, "matmul", "triton.matmul_tiled", **axes)
        schedule = {**task.default.to_json(), "block_m": 64, "block_n": 32, "block_k": 32, "order": "rows", "group": 1}
        entry = tuned.entry_for(task, tuned.H200, {**schedule, "num_warps": 4, "num_stages": 2})
        export([entry], form, folder / form)
        return next((folder / form).rglob(file)).read_bytes()

    return write


def _artifact(folder: Path) -> bytes:
    tuned = _tuned()
    entry = tuned.entry_on(tuned.CPU, "matmul", "tvm.untuned", axes={"M": 16, "N": 16, "K": 16})
    export([entry], "artifact", folder / "artifact")
    launch = next((folder / "artifact").rglob(ARTIFACT))
    # The binary lies beside the launch data, whole, while those are damaged.
    (folder / "kernel.so").write_bytes(launch.with_name("kernel.so").read_bytes())
    return launch.read_bytes()


def _wisdom(path: Path) -> None:
    wisdom_choice(path.parent, "k", ("BM", "BN"), "NVIDIA H200", [1024, 1024])


def _journal(folder: Path) -> bytes:
    load_file(SUPPORT / "journals.py").write_journal(folder, trials=6)
    return (folder / "journal.jsonl").read_bytes()


def _sample(name: str) -> Callable[[Path], bytes]:
    return lambda folder: load_file(SUPPORT / "foreign.py").write_sample(name, folder).read_bytes()


def _foreign_name(name: str) -> str:
    return str(load_file(SUPPORT / "foreign.py").FILES[name])


def _database(folder: Path) -> bytes:
    tuned = _tuned()
    entry = tuned.entry_on(tuned.CPU, "matmul", "tvm.untuned", axes={"M": 16, "N": 16, "K": 16})
    export([entry], "tvm", folder / "tvm")
    records = next((folder / "tvm").rglob("database_tuning_record.json"))
    # The workloads lie beside the records, whole, while those are damaged.
    (folder / "database_workload.json").write_bytes(records.with_name("database_workload.json").read_bytes())
    return records.read_bytes()


def _warm_start(folder: Path) -> bytes:
    proposal = Proposal({"block_m": 64, "num_warps": 4}, "a file", "mm", "NVIDIA H200", {"M": 64}, "float16", 1e-3)
    write_warm_start(folder / "warm.json", [proposal])
    return (folder / "warm.json").read_bytes()


def _recording(_: Path) -> bytes:
    whole = (ROOT / "experiments" / "spaces" / f"convolution__a4000{SUFFIX}").read_bytes()
    first, *rows = gzip.decompress(whole).splitlines()
    header = {**json.loads(first), "rows": 12}
    return b"\n".join([json.dumps(header).encode(), *rows[:12]]) + b"\n"


def _t1(_: Path) -> bytes:
    parameters = {"bx": "[1, 2] + list(range(32, 97, 32))", "by": "[2**i for i in range(0, 4)]", "pad": "[3]"}
    conditions = ("32 <= bx * by <= 256", "by == 1 or (bx + pad - 1) % 2 == 0")
    problem = {
        "ConfigurationSpace": {
            "TuningParameters": [{"Name": n, "Type": "int", "Values": v, "Default": 1} for n, v in parameters.items()],
            "Conditions": [{"Expression": e, "Parameters": []} for e in conditions],
        },
        "KernelSpecification": {"KernelName": "stencil", "Language": "CUDA"},
    }
    return json.dumps(problem).encode()


def _table(_: Path) -> bytes:
    rows = ("16,1,ok,2.0,0.1,900,1,3,1", "32,0,compile_error,,,900,,,", "32,1,ok,1.0,0.1,900,1,3,1")
    return "\n".join(
        ("bx,pad,status,time_ms,time_std_ms,compile_ms,verification_ms,benchmark_ms,framework_ms", *rows)
    ).encode()


def _wisdom_file(_: Path) -> bytes:
    header = {"version": "1.0", "objective": "time", "tunable_parameters": ["BM", "BN"], "key": "k"}
    row = {
        "config": [128, 64],
        "problem_size": [1024, 1024],
        "environment": {"device_name": "NVIDIA H200"},
        "time": 0.3,
    }
    return f"{json.dumps(header)}\n{json.dumps(row)}\n".encode()


def _policy(folder: Path) -> bytes:
    Policy().save(folder / "policy.npz")
    return (folder / "policy.npz").read_bytes()


def _prior(folder: Path) -> bytes:
    (folder / "a.recording").write_bytes(_recording(folder))
    made = read_recording(ROOT / "experiments" / "spaces" / f"convolution__a4000{SUFFIX}")
    Prior.train([made], about={"who": "nobody"}).save(folder / "prior.zip")
    return (folder / "prior.zip").read_bytes()


READERS: dict[str, Reader] = {
    "tuned log": Reader("log.json", _tuned_log, _recalled, 0.4),
    "tuned log as a warm start": Reader("log.json", _tuned_log, proposals_in),
    "journal": Reader("journal.jsonl", _journal, load_runs, 0.3),
    "journal as a recording": Reader("journal.jsonl", _journal, read_recording, 0.3),
    "recording": Reader(f"r{SUFFIX}", _recording, read_recording),
    "table of a space": Reader("convolution__a100.csv", _table, read_recording, 0.5),
    "T1": Reader("stencil.T1.json", _t1, lambda path: next(iter(read_t1(path)), None)),
    "warm start": Reader("warm.json", _warm_start, read_warm_start),
    **{
        f"import, {name}": Reader(_foreign_name(name), _sample(name), read_foreign)
        for name in ("triton", "fused_moe", "kernel_tuner", "t4")
    },
    "import, metaschedule": Reader("database_tuning_record.json", _database, read_foreign, 0.02),
    "export for triton": Reader(CONFIGS, _exported("triton", CONFIGS), read_configs),
    "export for inductor": Reader(TABLE, _exported("inductor", TABLE), read_table),
    "artifact": Reader(ARTIFACT, _artifact, lambda path: read_artifact(path.parent)),
    "wisdom": Reader("k.wisdom", _wisdom_file, _wisdom),
    "policy": Reader("policy.npz", _policy, Policy.load, 0.5),
    "prior": Reader("prior.zip", _prior, Prior.load, 0.5),
}
