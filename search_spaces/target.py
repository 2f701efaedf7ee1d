"""What is compiled for: `cuda -arch=sm_80`, `llvm`, `llvm -mcpu=skylake-avx512 -num-cores=8`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from search_spaces.errors import AutotuneError, UnknownName
from search_spaces.hardware import cuda_limits

KINDS = ("cuda", "llvm")
_OPTIONS = {"cuda": ("arch",), "llvm": ("mcpu", "num-cores")}


@dataclass(frozen=True)
class Target:
    """A code generation target; what it was measured on is a `Device` and never confused with it.

    Attributes:
        kind: "cuda" or "llvm".
        arch: `sm_80` for CUDA; the `-mcpu` of LLVM, "" for the CPU at hand.
        cores: Threads that an llvm schedule may use; 0 for all of the machine.
    """

    kind: str
    arch: str = ""
    cores: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName.of("target", self.kind, KINDS)
        if self.kind == "cuda":
            cuda_limits(self.arch)

    def runs_on(self, arch: str) -> bool:
        """Whether a device of `arch` is one that this compiles for; any CPU is, for llvm."""
        return self.kind == "llvm" or arch == self.arch.rstrip("af")

    def __str__(self) -> str:
        if self.kind == "cuda":
            return f"cuda -arch={self.arch}"
        mcpu = f" -mcpu={self.arch}" if self.arch else ""
        return f"llvm{mcpu}" + (f" -num-cores={self.cores}" if self.cores else "")


def parse_target(text: str, arch: str | None = None, default_arch: str | None = None) -> Target:
    """Reads a target as TVM spells it, with `arch` as given by the separate `-arch` option.

    Args:
        text: `cuda`, `cuda -arch=sm_80`, `llvm`, `llvm -mcpu=NAME -num-cores=N`.
        arch: Value of the command line's own `-arch`; must agree with `text` where both are given.
        default_arch: The arch of the CUDA device at hand, used where none is named.

    Raises:
        AutotuneError: The text is no target, or no arch is known for CUDA.
    """
    try:
        kind, *options = shlex.split(text) or [""]
    except ValueError as error:
        raise AutotuneError(f'target "{text}" cannot be read ({error})', "close its quotes") from error
    if kind not in KINDS:
        raise UnknownName.of("target", kind, KINDS)
    given: dict[str, str] = {}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        if name not in _OPTIONS[kind]:
            raise UnknownName.of(f"option of target {kind}", f"-{name}", (f"-{o}" for o in _OPTIONS[kind]))
        if not value:
            raise AutotuneError(f"-{name} of target {kind} has no value", f"write -{name}=...")
        given[name] = value
    key = "arch" if kind == "cuda" else "mcpu"
    if arch is not None and given.setdefault(key, arch) != arch:
        raise AutotuneError(f"-arch={arch} contradicts --target '{text}'", "name the arch once")
    if kind == "cuda":
        named = given.get("arch") or default_arch
        if named is None:
            raise AutotuneError("no arch for target cuda and no CUDA device here", "add for example -arch=sm_80")
        return Target("cuda", named)
    cores = given.get("num-cores", "0")
    if not cores.isdecimal():
        raise AutotuneError(f"-num-cores={cores} is not a whole number", "write for example -num-cores=8")
    return Target("llvm", given.get("mcpu", ""), int(cores))
