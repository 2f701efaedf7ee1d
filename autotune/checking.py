"""Whether an output is right: tolerance from dtype and reduction length, against a float64 reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from autotune.devices.base import Device
from autotune.generators.base import BoundLaunch, Kernel
from autotune.measurement import Policy
from search_spaces.operator import EPSILON
from search_spaces.task import Task


@dataclass(frozen=True)
class Tolerance:
    """An output element may deviate by `relative` of itself plus `of_rms` of the root mean square of its row."""

    relative: float
    of_rms: float


def tolerance(dtype: str, reduction_length: int) -> Tolerance:
    """What correct rounding may cost.

    The output's own rounding and that of narrow intermediates are a few units of `dtype`. Summing n terms in float32
    errs like a random walk, sqrt(n) units of float32; the factor 4 leaves room for its tail. A product in tf32 where
    float32 was asked for (relative error near 2**-11) is refused by this, as it should be.

    Args:
        dtype: Of inputs and outputs.
        reduction_length: Terms summed into one element.
    """
    unit = EPSILON[dtype]
    return Tolerance(4.0 * unit, 3.0 * unit + 4.0 * EPSILON["float32"] * math.sqrt(reduction_length))


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        error: Largest deviation in units of the tolerance, inf where an element is not finite.
        fault: What is wrong, "" where nothing is.
    """

    error: float
    fault: str


class Checker:
    """The task's arguments on the device, and the reference that outputs are compared with.

    Args:
        device: Where candidates run.
        task: What they compute.
        policy: Gives the inputs' seed.
    """

    def __init__(self, device: Device, task: Task, policy: Policy) -> None:
        self._device = device
        specs = task.operator.tensors(task.workload)
        self.inputs = [device.random(spec, policy.input_seed + i) for i, spec in enumerate(specs) if not spec.output]
        self.outputs = [device.empty(spec) for spec in specs if spec.output]
        self._reference = device.reference(task, self.inputs)
        self._tolerance = tolerance(task.workload.dtype, task.operator.reduction_length(task.workload))

    def bind(self, kernel: Kernel) -> BoundLaunch:
        """The kernel with these arguments."""
        return kernel.bind(self.inputs, self.outputs)

    def check(self, launch: BoundLaunch) -> Verdict:
        """Runs the candidate once over poisoned outputs; raises whatever the device raises."""
        self._device.poison(self.outputs)
        self._device.synchronize()
        launch()
        self._device.synchronize()
        error = max(
            self._device.deviation(o, r, self._tolerance.relative, self._tolerance.of_rms)
            for o, r in zip(self.outputs, self._reference, strict=True)
        )
        if error <= 1.0:
            return Verdict(error, "")
        return Verdict(error, "not finite" if error == math.inf else f"deviates {error:.3g} times the tolerance")
