"""This machine: builders are processes, and so is the worker of each device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from autotune.builders import local_builders
from autotune.devices.base import Device, Place
from autotune.devices.choice import chosen_places
from autotune.devices.cpu import usable_cores
from autotune.devices.lock import Queue, device_lock
from autotune.executors.base import Answer, Executor, Measuring, Seat, Site
from autotune.process import Child
from autotune.runner import Runner
from autotune.worker import DEVICES, Identified, setup
from search_spaces import registry
from search_spaces.errors import NoDevice
from search_spaces.space import Schedule
from search_spaces.task import Task


class Local(Executor):
    """Processes that may die without ending the run, see `autotune.process`."""

    here = True

    @staticmethod
    def ask(site: Site, kind: str, function: Callable[..., Answer], *arguments: object) -> Answer:
        """Called in this process."""
        del site, kind
        return function(*arguments)

    def builders(self, task: Task, count: int) -> Sequence[Runner[Schedule]]:
        """Processes that share the folder."""
        return local_builders(task, self.folder, count)

    def slots(self) -> int:
        """One a core."""
        return usable_cores()

    def seats(self, measuring: Measuring) -> Sequence[Seat]:
        """A process for each device, which sees no other device."""
        task, policy, name = measuring.task, measuring.policy, measuring.device
        device: type[Device] = registry.find("autotune.devices", name or DEVICES[task.target.kind], "device")
        places = device.places()
        if not places:
            raise NoDevice(f"no device for {task.target.kind} is left visible", "see CUDA_VISIBLE_DEVICES")
        arguments, fresh = (task, policy, self.folder, name), task.target.kind == "cuda"
        return [
            Seat(p, Child(setup, arguments, self.folder / _log(p), fresh=fresh, variables=p.variables))
            for p in chosen_places(places, self.site.devices)
        ]

    def hold(self, found: Identified, queue: Queue) -> AbstractContextManager[None]:
        """The lock of this machine."""
        return device_lock(found.info, found.uuid, queue)

    def close(self) -> None:
        """Nothing is left beside the runners."""


def _log(place: Place) -> str:
    return "worker.log" if place.name == "0" else f"worker-{place.name}.log"


EXECUTOR = Local
