"""The options that name a task, shared by the commands that take one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import click

from autotune.devices.base import DeviceInfo
from autotune.devices.cpu import cpu_info
from autotune.devices.cuda import cuda_info
from autotune.devices.roof import measured_bandwidth, measured_peak
from autotune.executors.base import HERE, Site
from autotune.records import TaskData
from search_spaces import registry
from search_spaces.amd import hip_hardware
from search_spaces.errors import InvalidWorkload, MissingDependency, NoDevice, UnknownName
from search_spaces.hardware import Hardware, cpu_hardware, cuda_hardware
from search_spaces.target import Target, parse_target
from search_spaces.task import OPERATORS, Task, find_operator

Command = TypeVar("Command", bound=Callable[..., Any])


def _operator_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in registry.names(OPERATORS) if name.startswith(incomplete)]


def task_options(required: bool) -> Callable[[Command], Command]:
    """Adds --op, --target, -arch, --shape, --dtype and --sketch to a command."""
    options = (
        click.option(
            "--op",
            required=required,
            shell_complete=_operator_names,
            help="Operator: a name of 'autotune ops', or path/to/my_op.py:MyOp.",
        ),
        click.option(
            "--target",
            default="llvm",
            show_default=True,
            help="llvm, cuda, or hip (compile only); TVM's spelling 'cuda -arch=sm_80' too.",
        ),
        click.option("-arch", "arch", metavar="ARCH", help="Architecture, for example -arch=sm_80."),
        click.option("--shape", metavar="A=1,B=2", default="", help="Axes, for example M=512,N=512,K=512."),
        click.option("--dtype", help="float16, bfloat16 or float32."),
        click.option("--sketch", "sketches", multiple=True, help="Keep sketches whose name starts so; repeatable."),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def parse_shape(text: str) -> dict[str, int]:
    """Reads `M=512,N=512`; a flag may be written as causal, true or false.

    Raises:
        InvalidWorkload: Something in it is no axis with a whole number.
    """
    axes = {}
    for part in filter(None, (p.strip() for p in text.replace(";", ",").split(","))):
        name, equals, value = part.partition("=")
        words = {"true": "1", "false": "0", "": "" if equals else "1"}
        number = words.get(value.lower(), value)
        if not number.lstrip("-").isdigit():
            raise InvalidWorkload(f"--shape has '{part}'", "write axes as NAME=NUMBER, for example M=512,N=512")
        axes[name.strip()] = int(number)
    return axes


def cpu_target_hardware(target: Target, measured: bool) -> Hardware:
    """Hardware of the CPU at hand; its roofline is measured only where `measured` (a fraction of a second)."""
    info = cpu_info()
    cores = target.cores or info.units
    peak = measured_peak(cores) if measured else None
    return cpu_hardware(
        info.name,
        cores,
        info.cache_bytes,
        measured_bandwidth() if measured else float("inf"),
        {"float32": peak or float("inf")},
    )


@dataclass(frozen=True)
class TaskOptions:
    """The values of the options that name a task."""

    op: str
    target: str = "llvm"
    arch: str | None = None
    shape: str = ""
    dtype: str | None = None
    sketches: tuple[str, ...] = ()

    @classmethod
    def of(cls, task: TaskData) -> TaskOptions:
        """The options that name a recorded task."""
        shape = ",".join(f"{k}={v}" for k, v in task.workload.axes)
        return cls(task.reference, task.target, None, shape, task.workload.dtype, task.only)


def make_task(options: TaskOptions, *, measure_roof: bool, site: Site = HERE) -> Task:
    """Builds the task that the options name.

    Args:
        options: The options.
        measure_roof: Whether a CPU's roofline is measured.
        site: Where it is to be measured.

    Raises:
        AutotuneError: A name or value that cannot be, with its remedy.
    """
    operator = find_operator(options.op)
    at_hand = site.ask("cuda", cuda_info, site.devices) if options.target.startswith("cuda") else None
    target = parse_target(options.target, options.arch, at_hand.arch if at_hand else None)
    workload = operator.workload(target.kind, options.dtype, **parse_shape(options.shape))
    if target.kind == "llvm":
        hardware = site.ask("llvm", cpu_target_hardware, target, measure_roof)
    elif target.kind == "hip":
        hardware = hip_hardware(target.arch)
    else:
        same = at_hand is not None and target.runs_on(at_hand.arch)
        hardware = cuda_hardware(target.arch, at_hand.name if at_hand is not None and same else None)
    task = Task(options.op, workload, target, hardware, options.sketches)
    if options.sketches and not task.sketches and not task.refusals:
        known = replace(task, only=())
        raise UnknownName.of("sketch", options.sketches[0], (*known.sketches, *known.refusals))
    return task


def on_device(task: Task, device: DeviceInfo) -> Task:
    """`task` with the roofline of `device`, where that is of another arch than the target."""
    if task.target.runs_on(device.arch):
        return task
    return replace(task, hardware=cuda_hardware(task.target.arch, device.name))


def require_device(task: Task, foreign: bool, site: Site = HERE) -> DeviceInfo:
    """The device that `task` is measured on, or the first of several, checked before anything is built.

    Raises:
        NoDevice: There is none, or one of another arch and `foreign` is not given.
        MissingDependency: torch is not installed.
    """
    if task.target.kind == "llvm":
        return site.ask("llvm", cpu_info)
    if task.target.kind == "hip":
        raise NoDevice(f"nothing is measured on AMD's GPUs, and {task.target} is one", "add --compile-only")
    device = site.ask("cuda", cuda_info, site.devices)
    if device is None:
        raise NoDevice(
            f"{task.target} needs a CUDA device of arch {task.target.arch} and this machine has none",
            "add --compile-only, or run where there is one ('autotune doctor' shows what is here)",
        )
    if not site.ask("cuda", registry.available, "torch"):
        raise MissingDependency("measuring on CUDA needs torch", "pip install 'kernel-autotune[cuda]'")
    if not task.target.runs_on(device.arch) and not foreign:
        raise NoDevice(
            f"{task.target} cannot be measured on this machine's {device.name}, which is {device.arch}",
            f"use -arch={device.arch}, --compile-only, or --foreign-device to measure anyway",
        )
    return device
