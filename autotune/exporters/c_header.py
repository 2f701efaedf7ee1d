"""C and CUDA C++: constants of each workload on each device, chosen with -DTARGET_NVIDIA_H200 when compiling."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autotune.exporters.base import Exporter, ExportFault
from autotune.recall import Winner
from search_spaces.schedule import Value

FILE = "kernel_autotune.h"
_COMPILERS = ("cc", "gcc", "clang")
_WORD = re.compile(r"[A-Za-z0-9_.+-]*")
_NOTE = "Compile with -DTARGET_<DEVICE>; without one, or with one that was not tuned, the header stops the compiler."


class CHeaderExporter(Exporter):
    """One header, valid C11 and C++."""

    summary = "a header of constants a device, for CUDA C++ at compile time"

    def missing(self) -> str | None:
        """A C compiler, which reads the header again."""
        return None if _compiler() else f"no C compiler ({', '.join(_COMPILERS)}) on PATH"

    def why_not(self, winner: Winner) -> str | None:
        """A word in a schedule becomes part of a name."""
        strange = [v for v in winner.schedule.knobs.values() if isinstance(v, str) and not _WORD.fullmatch(v)]
        return f"its value {strange[0]!r} is no name in C" if strange else None

    def write(self, winners: Sequence[Winner], folder: Path) -> None:
        """Groups by device."""
        by_device: dict[str, list[Winner]] = {}
        for winner in winners:
            by_device.setdefault(target_macro(winner), []).append(winner)
        lines = ["/* Written by kernel-autotune; sources in provenance.json. */", "#pragma once"]
        for place, (target, members) in enumerate(by_device.items()):
            lines.append(f"#{'elif' if place else 'if'} defined({target})")
            for winner in members:
                lines.append(f"/* {prefix(winner)}: {winner.entry.seconds:.4g} s, {_name(winner.schedule.sketch)} */")
                lines += [f"#define {name} {value}" for name, value in constants(winner).items()]
        lines += ["#else", f'#error "define one of {", ".join(by_device)}"', "#endif", ""]
        (folder / FILE).write_text("\n".join(lines))

    def reopen(self, winners: Sequence[Winner], folder: Path) -> Sequence[str]:
        """Has the compiler assert every constant, once a device."""
        compiler = _compiler()
        assert compiler is not None
        by_device: dict[str, list[Winner]] = {}
        for winner in winners:
            by_device.setdefault(target_macro(winner), []).append(winner)
        for target, members in by_device.items():
            program = f'#include "{FILE}"\n' + "".join(line for w in members for line in _assertions(w))
            options = ["-std=c11", "-fsyntax-only", "-Werror", "-x", "c", f"-D{target}", f"-I{folder}", "-"]
            done = subprocess.run([compiler, *options], input=program, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise ExportFault(f"the C compiler does not take the header: {done.stderr.strip().splitlines()[0]}")
        return (_NOTE,)


def _compiler() -> str | None:
    return next(filter(None, map(shutil.which, _COMPILERS)), None)


def _name(text: str) -> str:
    """Letters, digits and underscores, in capitals."""
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").upper()


def target_macro(winner: Winner) -> str:
    """The macro that chooses the device."""
    return f"TARGET_{_name(winner.entry.device.name)}"


def prefix(winner: Winner) -> str:
    """What the macros of a workload start with."""
    workload = winner.task.workload
    axes = "_".join(f"{axis}{extent}" for axis, extent in workload.axes)
    cores = f"_C{winner.task.target.cores}" if winner.task.target.cores else ""
    return f"{_name(workload.operator)}_{_name(axes)}_{_name(workload.dtype)}{cores}"


def constants(winner: Winner) -> Mapping[str, str]:
    """Macro -> its text: numbers, a tuple's numbers one by one, and for a word 1 under its own name.

    Raises:
        ExportFault: Two knobs would get the same macro.
    """
    pairs = [pair for knob, value in winner.schedule.knobs.items() for pair in _macros(knob, value)]
    made = {f"{prefix(winner)}_{name}": text for name, text in pairs}
    if len(made) != len(pairs):
        raise ExportFault(f"{winner}: two of its knobs have the same name in C")
    return made


def _macros(knob: str, value: Value) -> Iterator[tuple[str, str]]:
    if isinstance(value, tuple):
        yield from ((f"{_name(knob)}_{place}", str(part)) for place, part in enumerate(value))
    elif isinstance(value, str):
        yield f"{_name(knob)}_IS_{_name(value)}", "1"
    else:
        yield _name(knob), str(int(value))


def _assertions(winner: Winner) -> Iterator[str]:
    for name, value in constants(winner).items():
        yield f'_Static_assert({name} == {value}, "{name}");\n'


EXPORTER = CHeaderExporter()
