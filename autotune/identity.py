"""Identity: everything that a measured time depends on, and what a reader makes of a record with another one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from autotune.devices.base import DeviceInfo
from autotune.environment import Environment
from autotune.measurement import Policy
from autotune.records import TaskData, TensorData
from autotune.tuned_log import Entry
from search_spaces.errors import OtherIdentity
from search_spaces.schedule import SKETCH

# Distributions that turn a schedule into a time; those that only search are left out.
_SOFTWARE: Mapping[str, tuple[str, ...]] = {
    "llvm": ("kernel-autotune", "apache-tvm", "apache-tvm-ffi", "numpy"),
    "cuda": ("kernel-autotune", "apache-tvm", "apache-tvm-ffi", "triton", "torch"),
}
_DEVICE, _ARCH = "device ", "device arch"
# Fields in which a record must agree before it may be used at all; the winner's own sketch is another one.
_BINDING = frozenset(("operator", "axes", "dtype", "tensors", "target", "device kind", _ARCH))


class Reading(StrEnum):
    """How a reader treats a record whose identity is not that of this machine.

    EXACT passes such a record over. COMPATIBLE takes it where operator, axes, dtypes, layout, arch and the source of
    its sketch are the same, and has its schedules verified again here. REFUSE stops with the list of differences.
    """

    EXACT = "exact"
    COMPATIBLE = "compatible"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Identity:
    """What a measured time depends on.

    Attributes:
        operator: Its name.
        axes: Name and value.
        dtype: Of the tensors.
        tensors: Shapes, dtypes and strides of the arguments.
        source: Hash of the operator's source.
        target: What is compiled for.
        sketches: Sketch -> hash of its source.
        space: Fingerprint of the space.
        device: Model, arch, multiprocessors, memory, driver.
        software: Compilers, libraries and runtimes -> version.
        policy: How it is measured.
    """

    operator: str
    axes: tuple[tuple[str, int], ...]
    dtype: str
    tensors: tuple[TensorData, ...]
    source: str
    target: str
    sketches: Mapping[str, str]
    space: str
    device: DeviceInfo
    software: Mapping[str, str]
    policy: Policy

    @staticmethod
    def of(task: TaskData, device: DeviceInfo, environment: Environment, policy: Policy) -> Identity:
        """The identity that these four make together."""
        packages = {name: v for name, v in environment.versions.items() if name in _SOFTWARE.get(device.kind, ())}
        return Identity(
            operator=task.workload.operator,
            axes=task.workload.axes,
            dtype=task.workload.dtype,
            tensors=task.tensors,
            source=task.source,
            target=task.target,
            sketches=task.sketches,
            space=task.space,
            device=device,
            software={**environment.tools, **packages},
            policy=policy,
        )

    @property
    def canonical(self) -> str:
        """JSON with sorted keys and no spaces: equal identities give equal texts."""
        return msgspec.json.encode(self, order="sorted").decode()

    @property
    def fingerprint(self) -> str:
        """The sha256 of the canonical JSON."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()

    def fields(self) -> dict[str, str]:
        """Every field by a name that people read: `operator`, `device driver`, `software triton`, `sketch NAME`."""
        flat: dict[str, str] = {}
        for name, value in msgspec.to_builtins(self).items():
            if name == "sketches":
                flat |= {f"{SKETCH} {sketch}": text for sketch, text in value.items()}
            elif isinstance(value, dict):
                flat |= {f"{name} {key}": _text(part) for key, part in value.items()}
            else:
                flat[name] = _text(value)
        return flat


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, order="sorted").decode()


@dataclass(frozen=True)
class Difference:
    """A field in which a record differs from this machine.

    Attributes:
        field: Its name.
        recorded: Its value in the record, "" where it has none.
        here: Its value here, "" where there is none.
        binding: Whether the record cannot be used at all because of it.
    """

    field: str
    recorded: str
    here: str
    binding: bool

    def __str__(self) -> str:
        return f"{self.field}: {_short(self.recorded)} recorded, {_short(self.here)} here"


def _short(text: str) -> str:
    return (text if len(text) <= 60 else f"{text[:57]}...") or "none"


@dataclass(frozen=True)
class Judgement:
    """What a reading policy makes of one record.

    Attributes:
        policy: The policy.
        differences: Fields that differ, binding ones first.
        allowed: Whether the record may be used here.
        must_verify: Whether its schedules must be verified here before they are used.
    """

    policy: Reading
    differences: tuple[Difference, ...]
    allowed: bool
    must_verify: bool

    @property
    def other_device(self) -> bool:
        """Whether it was measured on another device."""
        return any(d.field.startswith(_DEVICE) for d in self.differences)


def judge(entry: Entry, here: Identity, policy: Reading) -> Judgement:
    """Compares a record with this machine.

    Args:
        entry: The record.
        here: The identity that measuring the same task on this machine would have.
        policy: The reader's choice.

    Raises:
        OtherIdentity: The policy is REFUSE and something differs.
    """
    binding = _BINDING | {f"{SKETCH} {str(entry.schedule[SKETCH]).partition('/')[0]}"}
    if entry.unverified:
        # Not every format says what a CPU's arch was; a GPU's is that of the target, which binds.
        binding -= {_ARCH}
    found = _differences(identity_of(entry), here, binding)
    if policy is Reading.REFUSE and found:
        raise OtherIdentity(
            f"{entry.task.workload} for {entry.task.target} was recorded elsewhere: {'; '.join(map(str, found))}",
            "tune again here, or read it with --policy compatible",
        )
    allowed = not found or (policy is Reading.COMPATIBLE and not found[0].binding)
    return Judgement(policy, found, allowed, allowed and bool(found))


def identity_of(entry: Entry) -> Identity:
    """The identity of a record."""
    return Identity.of(entry.task, entry.device, entry.environment, entry.policy)


def differences(first: Entry, second: Entry) -> tuple[Difference, ...]:
    """What differs between the identities of two records, the first as recorded and the second as here."""
    return _differences(identity_of(first), identity_of(second), _BINDING)


def _differences(recorded: Identity, here: Identity, binding: Set[str]) -> tuple[Difference, ...]:
    """The fields that differ, binding ones first."""
    before, now = recorded.fields(), here.fields()
    found = [
        Difference(name, before.get(name, ""), now.get(name, ""), name in binding)
        for name in dict.fromkeys((*before, *now))
        if before.get(name) != now.get(name)
    ]
    return tuple(sorted(found, key=lambda d: not d.binding))
