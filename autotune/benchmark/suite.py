"""Suites: workloads that belong together, and the mark that tuned kernels are to reach on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from search_spaces.errors import AutotuneError, UnknownName
from search_spaces.target import KINDS

FOLDER = Path(__file__).parent / "suites"
_MIB = 1 << 20


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a suite asks for; None where it asks for no such thing.

    Attributes:
        least: No workload under so many times its fastest library.
        geometric_mean: Of the workloads' speed-ups over their fastest libraries.
        copy_share: Share of the speed of a device-to-device copy that each workload must reach.
        copy_from_mib: Only workloads that move so many MiB are held against the copy.
    """

    least: float | None = None
    geometric_mean: float | None = None
    copy_share: float | None = None
    copy_from_mib: float = 64.0

    def counts_copy(self, moved: float) -> bool:
        """Whether a workload that moves so many bytes is held against the copy."""
        return self.copy_share is not None and moved >= self.copy_from_mib * _MIB


class Group(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Shapes of one operator.

    Attributes:
        op: The operator, as `--op` takes it.
        shapes: As `--shape` takes them.
        dtypes: Each shape is measured in each of them; () for the operator's default.
    """

    op: str
    shapes: tuple[str, ...]
    dtypes: tuple[str, ...] = ()


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suite file.

    Attributes:
        title: One line.
        targets: Target kinds that it is for.
        workloads: What is measured, in order.
        mark: What is to be reached.
        name: The file's name.
    """

    title: str
    targets: tuple[str, ...]
    workloads: tuple[Group, ...]
    mark: Mark = Mark()
    name: str = ""


class Case(msgspec.Struct, frozen=True):
    """One workload of a suite, as the command line would name it."""

    suite: str
    op: str
    shape: str
    dtype: str | None
    mark: Mark

    @property
    def title(self) -> str:
        """For messages."""
        return " ".join(filter(None, (Path(self.op.partition(":")[0]).stem, self.shape, self.dtype)))

    @property
    def slug(self) -> str:
        """The same as part of a file's name."""
        return "".join(c if c.isalnum() else "-" for c in self.title.replace("=", ""))


def cases(suite: Suite) -> Iterator[Case]:
    """The workloads of a suite, one by one."""
    for group in suite.workloads:
        for dtype in group.dtypes or (None,):
            for shape in group.shapes:
                yield Case(suite.name, group.op, shape, dtype, suite.mark)


def shipped() -> tuple[str, ...]:
    """Names of the suites that come with the package."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_suite(name: str) -> Suite:
    """The suite called `name`, or in the file `name` where it ends in `.toml`.

    Raises:
        UnknownName: No such suite.
        AutotuneError: The file is not there or holds no suite.
    """
    if not name.endswith(".toml") and name not in shipped():
        raise UnknownName.of("suite", name, shipped())
    path = Path(name) if name.endswith(".toml") else FOLDER / f"{name}.toml"
    try:
        made = msgspec.toml.decode(path.read_bytes(), type=Suite)
    except OSError as error:
        raise AutotuneError(
            f"suite {path} cannot be read ({error.strerror})", "name a file, or a suite of --list"
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise AutotuneError(f"{path} is no suite: {error}", "see autotune/benchmark/suites for examples") from error
    for kind in made.targets:
        if kind not in KINDS:
            raise UnknownName.of(f"target in {path}", kind, KINDS)
    return msgspec.structs.replace(made, name=path.stem)


def suites_for(names: Sequence[str], kind: str) -> list[Suite]:
    """The suites asked for, or all shipped ones, that are for targets of `kind`.

    Raises:
        AutotuneError: One that was asked for is for other targets.
    """
    found = [load_suite(name) for name in names or shipped()]
    for suite in found:
        if names and kind not in suite.targets:
            raise AutotuneError(
                f"suite {suite.name} is for target {' and '.join(suite.targets)}, not {kind}", "choose another --target"
            )
    return [suite for suite in found if kind in suite.targets]
