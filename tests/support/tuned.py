"""Entries of tuned logs without a search: a schedule of a real space with made-up times."""

import numpy as np

from autotune.devices.base import DeviceInfo
from autotune.devices.cpu import cpu_info
from autotune.environment import read_environment
from autotune.generators.base import Resources
from autotune.identity import Identity
from autotune.measurement import Policy
from autotune.recall import recorded_hardware
from autotune.records import TaskData
from autotune.toolchain import tool_versions
from autotune.tuned_log import Entry
from search_spaces.schedule import Schedule
from search_spaces.target import parse_target
from search_spaces.task import Task, find_operator

H200 = DeviceInfo("cuda", "NVIDIA H200", "sm_90", 132, 150 << 30, "575.0")
CPU = cpu_info()


class _Place:
    """What `recorded_hardware` asks of an entry that is not there yet."""

    def __init__(self, device):
        self.device = device


def task_on(device, operator, only=(), dtype=None, target=None, **axes):
    """A task as it was recorded on `device`."""
    target = parse_target(target or ("llvm" if device.kind == "llvm" else f"cuda -arch={device.arch}"))
    workload = find_operator(operator).workload(target.kind, dtype, **axes)
    only = (only,) if isinstance(only, str) else only
    return Task(operator, workload, target, recorded_hardware(_Place(device), target, workload), only)


def entry_for(task, device, schedule=None, seconds=2e-5, seed=0, **fields):
    """An entry of `task`; of a random schedule where none is given."""
    if schedule is None:
        schedule = task.space.sample(np.random.default_rng(seed))
    elif not isinstance(schedule, Schedule):
        schedule = Schedule.from_json(schedule)
    tools = tool_versions(task) if task.target.kind == "llvm" else {}
    data, environment, policy = TaskData.of(task), read_environment(tools), Policy()
    made = {
        "task": data,
        "device": device,
        "foreign": False,
        "environment": environment,
        "policy": policy,
        "schedule": dict(schedule.items),
        "seconds": seconds,
        "samples": (seconds, seconds * 1.1, seconds * 0.9),
        "raced": False,
        "over_default": None,
        "over_library": None,
        "library": "",
        "roofline": 0.5,
        "operations": 1.0,
        "bytes": 1.0,
        "resources": Resources(),
        "binary": "",
        "trials": 1,
        "strategy": "random",
        "seed": seed,
        "identity": Identity.of(data, device, environment, policy).fingerprint,
    }
    return Entry(**{**made, **fields})


def entry_on(device, operator, only=(), dtype=None, target=None, axes=None, **fields):
    """An entry of a task made for it."""
    return entry_for(task_on(device, operator, only, dtype, target, **(axes or {})), device, **fields)
