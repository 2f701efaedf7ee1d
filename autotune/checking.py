"""Whether an output is right: tolerance from dtype and reduction length, against a float64 reference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from autotune.buffers import Buffers
from autotune.clock import monotonic
from autotune.devices.base import Device
from autotune.generators.base import BoundLaunch, Kernel
from autotune.inputs import Distribution, Draw, distributions, filled, huge, normal
from autotune.measurement import Policy
from search_spaces.operator import EPSILON, LARGEST, Content
from search_spaces.task import Task

# Between the seeds of the first and the second set of inputs; more than an operator has inputs.
_SEED_STEP = 1000
# How often inputs are halved until the outputs fit their dtype.
_HALVINGS = 24
# Deviation allowed to whole numbers: none.
_WHOLE = 0.5
# Share of the largest output that rounding may move before inputs say nothing about a candidate.
_DECIDED = 0.1


@dataclass(frozen=True)
class Tolerance:
    """An output element may deviate by `relative` of itself plus `of_rms` of the root mean square of its row."""

    relative: float
    of_rms: float


def tolerance(dtype: str, reduction_length: int) -> Tolerance:
    """What correct rounding may cost.

    The output's own rounding and that of narrow intermediates are a few units of `dtype`. Summing n terms in float32
    errs like a random walk, sqrt(n) units of float32; the factor 4 leaves room for its tail. What is divided by such a
    sum errs by a share of itself, half as much. A product in tf32 where float32 was asked for (relative error near
    2**-11) is refused by this, as it should be.

    Args:
        dtype: Of inputs and outputs.
        reduction_length: Terms summed into one element.
    """
    unit = EPSILON[dtype]
    walk = EPSILON["float32"] * math.sqrt(reduction_length)
    return Tolerance(4.0 * unit + 2.0 * walk, 3.0 * unit + 4.0 * walk)


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        error: Largest deviation in units of the tolerance, inf where an element is not finite; None where not compared.
        fault: What is wrong, "" where nothing is.
        deterministic: Whether all runs on the same inputs gave the same bits; None where that was not seen.
        late: Work of the candidate went on after it was waited for.
        seconds: Wall time of the run, by the host's clock; 0 where there was none.
    """

    error: float | None
    fault: str
    deterministic: bool | None = None
    late: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class InputSet:
    """Inputs with what is right for them.

    Attributes:
        inputs: Pristine copies, out of the candidates' reach.
        reference: Outputs in float64.
        allowed: Deviation allowed to each element.
    """

    inputs: Sequence[Any]
    reference: Sequence[Any]
    allowed: Sequence[Any]


class Checker:
    """The task's arguments on the device, and the references that outputs are compared with.

    Between two candidates the arguments hold the first set of inputs. A second set shows candidates that remember.

    Args:
        device: Where candidates run.
        task: What they compute.
        policy: Gives the inputs' seed.
    """

    def __init__(self, device: Device, task: Task, policy: Policy) -> None:
        self._device = device
        self.task = task
        self._seed = policy.input_seed
        specs = task.operator.tensors(task.workload)
        self._given = [s for s in specs if not s.output]
        self._buffers = Buffers(device, specs)
        self.inputs, self.outputs = self._buffers.inputs, self._buffers.outputs
        self._results = [s for s in specs if s.output]
        self._seen = [device.typed(device.raw(s.bytes), s) for s in self._results]
        self._first = [device.typed(device.raw(s.bytes), s) for s in self._results]
        self._tolerance = tolerance(task.workload.dtype, task.operator.reduction_length(task.workload))
        plain = [normal] * len(self._given)
        self._one, self._other = (self._plain_set(plain, self._seed + n * _SEED_STEP) for n in range(2))
        self._clean = False
        self.restore()

    def bind(self, kernel: Kernel) -> BoundLaunch:
        """The kernel with these arguments."""
        return kernel.bind(self.inputs, self.outputs)

    def check(self, launch: BoundLaunch) -> Verdict:
        """Runs the candidate once, and leaves poisoned outputs behind; raises whatever the device raises."""
        if not self._clean:
            self.restore()
        self._clean = False
        verdict = self._run(launch, self._one)
        _copy(self._seen, self._first)
        self._device.poison(self.outputs)
        return verdict

    def check_again(self, launch: BoundLaunch) -> Verdict:
        """After `check` and timing: what the timed launches left, a run on other inputs, one more on the first."""
        fault = self._buffers.fault(self._one.inputs)
        if fault:
            return Verdict(None, f"when timed, {fault}")
        _copy(self.outputs, self._seen)
        left = self._compare(self._one, "when timed, ")
        if left.fault:
            return left
        timed = self._repeats()
        self._load(self._other)
        verdict = self._run(launch, self._other, "on other inputs, ")
        if verdict.fault:
            return verdict
        self._load(self._one)
        verdict = self._run(launch, self._one, "when run again, ")
        self._clean = not verdict.fault
        return replace(verdict, deterministic=timed and self._repeats())

    def check_once(self, launch: BoundLaunch, when: str = "") -> Verdict:
        """One run on the first inputs; a fault says `when`."""
        if not self._clean:
            self.restore()
        self._clean = False
        verdict = self._run(launch, self._one, when)
        self._clean = not verdict.fault
        return verdict

    def check_distributions(self, launches: Sequence[BoundLaunch]) -> list[Verdict]:
        """Runs finalists on inputs of other distributions; the first fault of each, or its largest error."""
        self._clean = False
        verdicts = [Verdict(0.0, "") for _ in launches]
        for name, kinds in distributions(self.task.operator, self.task.workload, self._given).items():
            made = self._conditioned_set(kinds)
            if made is None:
                continue
            for i, launch in enumerate(launches):
                if not verdicts[i].fault:
                    self._buffers.repair()
                    self._load(made)
                    found = self._run(launch, made, f"on inputs of the distribution '{name}', ")
                    verdicts[i] = max(verdicts[i], found, key=lambda v: (bool(v.fault), v.error or 0.0))
        return verdicts

    def _run(self, launch: BoundLaunch, wanted: InputSet, when: str = "") -> Verdict:
        """One launch over poisoned outputs, judged by what its stream sees at its end.

        The stream is kept busy while poison, launch and copy are queued. What the candidate hands to another stream
        then comes either before the poison or after the copy.
        """
        self._device.hold()
        self._device.poison(self.outputs)
        started = monotonic()
        launch()
        _copy(self.outputs, self._seen)
        self._device.synchronize()
        seconds = monotonic() - started
        fault = self._buffers.fault(wanted.inputs)
        if fault:
            return Verdict(None, f"{when}{fault}")
        verdict = self._compare(wanted, when)
        if verdict.fault:
            self._device.settle()
        if any(self._device.differ(list(zip(self.outputs, self._seen, strict=True)))):
            return Verdict(verdict.error, f"{when}writes its output after the launch has ended", late=True)
        return replace(verdict, seconds=seconds)

    def _compare(self, wanted: InputSet, when: str) -> Verdict:
        """Judges the output last seen."""
        triples = zip(self._seen, wanted.reference, wanted.allowed, strict=True)
        error = max(self._device.deviation(*triple) for triple in triples)
        if error <= 1.0:
            return Verdict(error, "")
        fault = "not finite" if error == math.inf else f"deviates {error:.3g} times the tolerance"
        return Verdict(error, f"{when}{fault}")

    def _repeats(self) -> bool:
        """Whether the output last seen has the bits of the first run."""
        return not any(self._device.differ(list(zip(self._seen, self._first, strict=True))))

    def _load(self, wanted: InputSet) -> None:
        _copy(wanted.inputs, self.inputs)

    def restore(self) -> None:
        """Undoes whatever a check or a candidate did to the arguments."""
        self._buffers.repair()
        self._load(self._one)
        self._clean = True

    def _draw(self, kinds: Sequence[Distribution], seed: int, scale: float) -> list[Any]:
        xp, length = self._device.namespace, self.task.operator.reduction_length(self.task.workload)
        made = []
        for i, (spec, kind) in enumerate(zip(self._given, kinds, strict=True)):
            array = self._device.typed(self._device.raw(spec.bytes), spec)
            values = kind(Draw(xp, self._device.normal(spec.shape, seed + i), i, length))
            array[...] = filled(xp, values, spec, scale)
            made.append(array)
        return made

    def _fitting(self, kinds: Sequence[Distribution], seed: int) -> tuple[list[Any], tuple[Any, ...]]:
        """Inputs and reference, the inputs halved until the outputs' dtype can hold what is right.

        Products of products pass float16's largest value where the float64 reference does not. With smaller inputs
        every element is compared, and an infinite one is always wrong.
        """
        for halvings in range(_HALVINGS + 1):
            inputs = self._draw(kinds, seed, 0.5**halvings)
            reference = self._device.reference(self.task, self._device.widened(inputs))
            if self._fits(reference):
                break
        return inputs, reference

    def _fits(self, reference: Sequence[Any]) -> bool:
        """Whether the outputs' dtypes can hold it."""
        limits = [LARGEST[spec.dtype] for spec in self._results]
        return all(self._device.magnitude(r) <= limit for r, limit in zip(reference, limits, strict=True))

    def _allowed(self, reference: Sequence[Any], relative: float, of_rms: float) -> list[Any]:
        """Deviation allowed to each element; whole numbers must be equal."""
        exact = [spec.dtype not in EPSILON for spec in self._results]
        return [
            self._device.allowance(r, 0.0, 0.0) + _WHOLE if whole else self._device.allowance(r, relative, of_rms)
            for r, whole in zip(reference, exact, strict=True)
        ]

    def _plain_set(self, kinds: Sequence[Distribution], seed: int) -> InputSet:
        inputs, reference = self._fitting(kinds, seed)
        return InputSet(inputs, reference, self._allowed(reference, self._tolerance.relative, self._tolerance.of_rms))

    def _conditioned_set(self, kinds: Sequence[Distribution]) -> InputSet | None:
        """Inputs with a wider tolerance; None where huge ones overflow, or where rounding decides what the outputs are.

        Summing equal terms errs to one side, up to half a unit of float32 each time. And operators magnify rounding:
        with large inputs a softmax makes of the rounding of its argument a large change. So the reference is computed
        a second time from inputs that are off by what summing in float32 may cost, and what that changes is allowed:
        what it changes in the row that is changed most, since whether it meets a single row is a matter of luck.
        """
        device, task = self._device, self.task
        if huge in kinds:
            inputs = self._draw(kinds, self._seed, 1.0)
            reference = device.reference(task, device.widened(inputs))
        else:
            inputs, reference = self._fitting(kinds, self._seed)
        wide = device.widened(inputs)
        length, unit = task.operator.reduction_length(task.workload), EPSILON["float32"]
        noise = [device.normal(s.shape, self._seed + _SEED_STEP + i) for i, s in enumerate(self._given)]
        off = [
            w * (1.0 + unit * math.sqrt(length) * n) if s.content is Content.VALUES else w
            for s, w, n in zip(self._given, wide, noise, strict=True)
        ]
        # What is a whole number, and decided by comparing, rounding does not change: a candidate must be exact.
        changed = [
            m - r if s.dtype in EPSILON else r - r
            for s, m, r in zip(self._results, device.reference(task, off), reference, strict=True)
        ]
        magnified = [device.magnitude(device.allowance(c, 0.0, 4.0)) for c in changed]
        largest = [device.magnitude(r) for r in reference]
        if not self._fits(reference) or not all(m <= _DECIDED * v for v, m in zip(largest, magnified, strict=True)):
            return None
        drift = 0.5 * unit * length
        relative, of_rms = self._tolerance.relative + drift, self._tolerance.of_rms + drift
        plain = self._allowed(reference, relative, of_rms)
        return InputSet(inputs, reference, [p + m for p, m in zip(plain, magnified, strict=True)])


def _copy(sources: Sequence[Any], targets: Sequence[Any]) -> None:
    """Copies on the current stream."""
    for source, target in zip(sources, targets, strict=True):
        target[...] = source
