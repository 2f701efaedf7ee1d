"""`python -m autotune.sanitized JOB`: one launch of one candidate over plain buffers, for a sanitizer to watch."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from autotune.builders import find_generator
from autotune.devices.base import Device
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
    for i, array in enumerate(inputs):
        array[...] = device.normal(array.shape, job.input_seed + i)
    device.poison(outputs)
    generator = find_generator(task.sketch_of(job.schedule).generator)
    launch = generator.load(task, job.schedule, job.artifact, job.folder).bind(inputs, outputs)
    device.synchronize()
    launch()
    device.synchronize()


if __name__ == "__main__":
    run(pickle.loads(Path(sys.argv[1]).read_bytes()))
