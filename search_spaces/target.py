"""What is compiled for: `cuda -arch=sm_80`, `hip -arch=gfx942`, `llvm`, `llvm -mcpu=skylake-avx512 -num-cores=8`."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from search_spaces.amd import HIP_MODELS, hip_hardware
from search_spaces.errors import AutotuneError, UnknownName
from search_spaces.hardware import cuda_limits

KINDS = ("cuda", "llvm")
# AMD's GPUs: for them programs are compiled and looked at, and nothing is measured.
COMPILED_ONLY = ("hip",)
# What others call the same; TVM spells an arch of it -mcpu.
_ALIASES = {"rocm": "hip"}
_OPTIONS = {"cuda": ("arch",), "hip": ("arch", "mcpu"), "llvm": ("mcpu", "num-cores")}
_EXAMPLES = {"cuda": "sm_80", "hip": next(iter(HIP_MODELS))}


@dataclass(frozen=True)
class Target:
    """A code generation target; what it was measured on is a `Device` and never confused with it.

    Attributes:
        kind: "cuda", "hip" or "llvm".
        arch: `sm_80` for CUDA, `gfx942` for HIP; the `-mcpu` of LLVM, "" for the CPU at hand.
        cores: Threads that an llvm schedule may use; 0 for all of the machine.
    """

    kind: str
    arch: str = ""
    cores: int = 0

    def __post_init__(self) -> None:
        if self.kind not in (*KINDS, *COMPILED_ONLY):
            raise UnknownName.of("target", self.kind, (*KINDS, *COMPILED_ONLY))
        if self.kind == "cuda":
            cuda_limits(self.arch)
        elif self.kind == "hip":
            hip_hardware(self.arch)

    def runs_on(self, arch: str) -> bool:
        """Whether a device of `arch` is one that this compiles for; any CPU is, for llvm."""
        return self.kind == "llvm" or arch == self.arch.rstrip("af")

    def __str__(self) -> str:
        if self.kind in ("cuda", "hip"):
            return f"{self.kind} -arch={self.arch}"
        mcpu = f" -mcpu={self.arch}" if self.arch else ""
        return f"llvm{mcpu}" + (f" -num-cores={self.cores}" if self.cores else "")


def parse_target(text: str, arch: str | None = None, default_arch: str | None = None) -> Target:
    """Reads a target as TVM spells it, with `arch` as given by the separate `-arch` option.

    Args:
        text: `cuda`, `cuda -arch=sm_80`, `hip -arch=gfx942` or `rocm -mcpu=gfx942`, `llvm`,
            `llvm -mcpu=NAME -num-cores=N`.
        arch: Value of the command line's own `-arch`; must agree with `text` where both are given.
        default_arch: The arch of the CUDA device at hand, used where none is named.

    Raises:
        AutotuneError: The text is no target, or no arch is known for CUDA.
    """
    try:
        kind, *options = shlex.split(text) or [""]
    except ValueError as error:
        raise AutotuneError(f'target "{text}" cannot be read ({error})', "close its quotes") from error
    kind = _ALIASES.get(kind, kind)
    if kind not in _OPTIONS:
        raise UnknownName.of("target", kind, _OPTIONS)
    given: dict[str, str] = {}
    for option in options:
        name, _, value = option.lstrip("-").partition("=")
        if name not in _OPTIONS[kind]:
            raise UnknownName.of(f"option of target {kind}", f"-{name}", (f"-{o}" for o in _OPTIONS[kind]))
        if not value:
            raise AutotuneError(f"-{name} of target {kind} has no value", f"write -{name}=...")
        meant = "arch" if kind == "hip" else name
        if given.setdefault(meant, value) != value:
            raise AutotuneError(f"target '{text}' names its {meant} twice", f"keep one -{meant}")
    key = "mcpu" if kind == "llvm" else "arch"
    if arch is not None and given.setdefault(key, arch) != arch:
        raise AutotuneError(f"-arch={arch} contradicts --target '{text}'", "name the arch once")
    if kind != "llvm":
        named = given.get("arch") or (default_arch if kind == "cuda" else None)
        if named is None:
            raise AutotuneError(
                f"no arch for target {kind}" + " and no CUDA device here" * (kind == "cuda"),
                f"add for example -arch={_EXAMPLES[kind]}",
            )
        return Target(kind, named)
    cores = given.get("num-cores", "0")
    if not cores.isdecimal():
        raise AutotuneError(f"-num-cores={cores} is not a whole number", "write for example -num-cores=8")
    return Target("llvm", given.get("mcpu", ""), int(cores))
