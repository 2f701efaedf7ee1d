"""What every Triton sketch gives the Triton code generator: a kernel, and how one schedule launches it."""

from __future__ import annotations

import ast
import importlib.util
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from search_spaces.sketch import Sketch
from search_spaces.space import Schedule

if TYPE_CHECKING:
    from search_spaces.task import Task


@dataclass(frozen=True)
class TensorArgument:
    """A tensor passed by address.

    Attributes:
        tensor: Name of the TensorSpec.
    """

    tensor: str


@dataclass(frozen=True)
class DescriptorArgument:
    """A tensor passed as a TMA descriptor made on the host.

    Attributes:
        tensor: Name of the TensorSpec.
        shape: The view of the tensor that the descriptor describes, row-major.
        block: The block that one copy moves, same rank.
    """

    tensor: str
    shape: tuple[int, ...]
    block: tuple[int, ...]


@dataclass(frozen=True)
class ScalarArgument:
    """An integer passed at run time.

    Attributes:
        value: The integer.
        specialised: Compiled as Triton's own launches compile it: 1 as a constant, a multiple of 16 as such. Else
            never by its value.
    """

    value: int
    specialised: bool = False

    @property
    def folded(self) -> bool:
        """Whether it is a constant of the binary and not passed."""
        return self.specialised and self.value == 1


@dataclass(frozen=True)
class WorkspaceArgument:
    """Device memory of the kernel's own, zero before the first launch; a launch leaves its counters at zero again.

    Launches of one bound schedule share it and must not overlap.

    Attributes:
        elements: Its size.
        dtype: Of its elements.
        name: Under which the schedule's other kernels find what this one leaves there, "" where none does.
    """

    elements: int
    dtype: str = "float32"
    name: str = ""


@dataclass(frozen=True)
class TypeConstant:
    """A constant that is one of Triton's types.

    Attributes:
        dtype: Its name, e.g. "bfloat16".
    """

    dtype: str


Constant = int | float | bool | str | TypeConstant | None
Argument = TensorArgument | DescriptorArgument | ScalarArgument | WorkspaceArgument


@dataclass(frozen=True)
class TritonLaunch:
    """How one kernel of a schedule is compiled and launched.

    Attributes:
        arguments: Kernel parameter name -> argument, in the kernel's parameter order.
        constants: Kernel parameter name -> constexpr value; between arguments where the kernel's own order is such.
        grid: Number of programs in x, y, z.
        num_warps: Warps of a program.
        num_stages: Depth of software pipelining.
        maxnreg: Register cap per thread, None for none.
        cluster: Programs that run as one cluster of blocks, consecutive in x; their number divides the grid.
        kernel: `module:function` where it is not the sketch's.
    """

    arguments: Mapping[str, Argument]
    constants: Mapping[str, Constant]
    grid: tuple[int, int, int]
    num_warps: int
    num_stages: int
    maxnreg: int | None = None
    cluster: int = 1
    kernel: str = ""


class TritonSketch(Sketch):
    """A sketch whose programs are one `@triton.jit` kernel with constexpr parameters, or several in a row.

    Class attributes:
        kernel: `module:function` of what Triton or Gluon jits; the module is imported only where Triton is used.
            A sketch in a user's own file writes `:function` for a kernel in that same file.
        others: Modules of what `launches` names beside it.
    """

    generator = "triton"
    kernel: str
    others: tuple[str, ...] = ()

    @abstractmethod
    def launch(self, task: Task, schedule: Schedule) -> TritonLaunch:
        """Arguments, constants, grid and compiler options of `schedule`; of its main kernel where it has several."""

    def launches(self, task: Task, schedule: Schedule) -> tuple[TritonLaunch, ...]:
        """All kernels of `schedule` in their order, each begun when the one before has ended."""
        return (self.launch(task, schedule),)

    def sources(self) -> tuple[Path, ...]:
        """The sketch's file, its kernels', and those beside these which the kernels take functions from."""
        found = dict.fromkeys(super().sources())
        for module in filter(None, (self.kernel.partition(":")[0], *self.others)):
            spec = importlib.util.find_spec(module)
            assert spec is not None, f"{self.name}: no module {module}"
            assert spec.origin is not None, f"{self.name}: {module} is no file"
            found.update(dict.fromkeys(_with_imports(Path(spec.origin), module.rpartition(".")[0])))
        return tuple(found)


@cache
def _with_imports(path: Path, package: str) -> tuple[Path, ...]:
    """A file, and all files of its package that it imports, directly or not; none of them is run."""
    found: dict[Path, None] = {}
    waiting = [path]
    while waiting:
        file = waiting.pop(0)
        if file in found:
            continue
        found[file] = None
        imports = (
            n.module for n in ast.walk(ast.parse(file.read_bytes())) if isinstance(n, ast.ImportFrom) and n.module
        )
        names = [m.rpartition(".") for m in imports]
        beside = [file.with_name(f"{name}.py") for parent, _, name in names if package and parent == package]
        waiting += [path for path in beside if path.is_file()]
    return tuple(found)
