"""`python -m autotune.sanitized JOB`: one launch of one candidate over plain buffers, for a sanitizer to watch."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

from autotune.builders import find_generator
from autotune.devices.base import Device
from autotune.inputs import filled
from autotune.sanitizer import SanitizerJob
from autotune.worker import DEVICES
from search_spaces import registry


def run(job: SanitizerJob) -> None:
    """Allocates arguments without guards, so that their ends are the ends of allocations, and launches once."""
    task = job.task
    found = registry.find("autotune.devices", job.device or DEVICES[task.target.kind], "device")
    device: Device = found()
    specs = task.operator.tensors(task.workload)
    arrays = [device.typed(device.raw(spec.bytes), spec) for spec in specs]
    inputs = [a for a, spec in zip(arrays, specs, strict=True) if not spec.output]
    outputs = [a for a, spec in zip(arrays, specs, strict=True) if spec.output]
    given = [spec for spec in specs if not spec.output]
    for i, (array, spec) in enumerate(zip(inputs, given, strict=True)):
        array[...] = filled(device.namespace, device.normal(array.shape, job.input_seed + i), spec)
    device.poison(outputs)
    generator = find_generator(task.sketch_of(job.schedule).generator)
    launch = generator.load(task, job.schedule, job.artifact, job.folder).bind(inputs, outputs)
    device.synchronize()
    launch()
    device.synchronize()


def read_job(path: Path) -> SanitizerJob:
    """The job in a file; what others could have written there is not unpickled, as that would run their code.

    Raises:
        PermissionError: The file is not this user's alone.
    """
    with path.open("rb") as file:
        state = os.fstat(file.fileno())
        if state.st_uid != os.getuid() or state.st_mode & 0o077:
            raise PermissionError(f"{path} is not private to this user")
        job: SanitizerJob = pickle.load(file)
        return job


if __name__ == "__main__":
    run(read_job(Path(sys.argv[1])))
