"""`autotune doctor`: versions, devices, what is missing and the command that mends it."""

from __future__ import annotations

import sys

import click
from rich.table import Table

from autotune.builders import GENERATORS, find_generator
from autotune.devices.cpu import cpu_info
from autotune.devices.cuda import cuda_info
from autotune.display import output, pretty_json
from autotune.environment import read_environment
from search_spaces import registry

_NEEDED_FOR = {
    "tvm": (
        "schedules for llvm and portable CUDA ones",
        "pip install 'apache-tvm==0.27.0.post1' 'apache-tvm-ffi<0.1.15'",
    ),
    "xgboost": ("the cost models of strategies hybrid and xgb", "pip install xgboost-cpu"),
    "mlflow": ("logging to MLflow", "pip install mlflow-skinny"),
    "triton": ("Triton sketches for CUDA", "pip install 'kernel-autotune[cuda]'"),
    "torch": ("measuring on CUDA", "pip install 'kernel-autotune[cuda]'"),
    "pynvml": ("finding CUDA devices", "pip install nvidia-ml-py"),
}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def command(as_json: bool) -> None:
    """Show versions, devices, what is missing and how to get it."""
    environment = read_environment()
    missing = {name: _NEEDED_FOR[name] for name in _NEEDED_FOR if not registry.available(name)}
    generators = {name: find_generator(name).missing() for name in registry.names(GENERATORS)}
    devices = [d for d in (cpu_info(), cuda_info()) if d is not None]
    if as_json:
        data = {
            "environment": environment,
            "devices": devices,
            "generators": generators,
            "missing": {name: {"needed_for": why, "remedy": how} for name, (why, how) in missing.items()},
        }
        sys.stdout.write(pretty_json(data) + "\n")
        return
    console = output()
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_row("python", environment.python)
    table.add_row("system", environment.system)
    for name, version in environment.versions.items():
        table.add_row(name, version)
    console.print(table)
    for device in devices:
        size = f"{device.memory_bytes / 2**30:.0f} GiB"
        console.print(f"device   {device.kind}: {device.name}, {device.arch}, {size}")
    if not any(d.kind == "cuda" for d in devices):
        console.print("no CUDA device: --target cuda works with --compile-only and 'autotune space'")
    for name, reason in generators.items():
        state = "ready" if reason is None else f"not usable: {reason}"
        console.print(f"generator {name}: {state}")
    for name, (why, how) in missing.items():
        console.print(f"missing  {name}, needed for {why}: {how}")


COMMAND = command
