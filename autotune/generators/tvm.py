"""TVM: a scheduled module becomes a shared object, and that a kernel over numpy arrays or torch CUDA tensors."""

from __future__ import annotations

import hashlib
import math
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from autotune.environment import calm_thread_pools
from autotune.generators.base import Artifact, BoundLaunch, BuildError, Generator, Kernel, Resources
from search_spaces import registry
from search_spaces.errors import InvalidSchedule
from search_spaces.schedule import Schedule
from search_spaces.sketches.tvm.base import EXTRA, TvmSketch, cores_of, one_line, tvm_target
from search_spaces.sketches.tvm_names import dtype_of
from search_spaces.task import Task

REMEDY = "pip install 'apache-tvm==0.27.0.post1' 'apache-tvm-ffi>=0.1.14.post0,<0.1.15'"
PACKAGES = ("apache-tvm", "apache-tvm-ffi")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_LAUNCH_BOUNDS = re.compile(r"__launch_bounds__\((\d+)")


# exp(r) for |r| <= log(2)/2 is 1 + r + r^2 times this polynomial, highest power first; log(2) in two parts.
EXP_POLYNOMIAL = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
LOG2_HIGH, LOG2_LOW = 0.693359375, -2.12194440e-4
# Arguments beyond these give the least or the greatest normal float.
EXP_LEAST, EXP_MOST = -87.3, 88.3


class TvmKernel(Kernel):
    """A function of a loaded shared object."""

    def __init__(self, module: Any, kind: str) -> None:
        self._module = module
        self._function = module["main"]
        self._kind = kind

    def bind(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> BoundLaunch:
        """Wraps numpy arrays without a copy; torch CUDA tensors are taken as they are, on torch's current stream."""
        function, arguments = self._function, (*inputs, *outputs)
        if self._kind == "llvm":
            wrap = registry.optional("tvm.runtime", EXTRA).from_dlpack
            arguments = tuple(wrap(array) for array in arguments)
        return lambda: function(*arguments)


class TvmGenerator(Generator):
    """Compiles with LLVM, and with nvcc for CUDA."""

    name = "tvm"
    preload = ("tvm", "tvm.te", "tvm.topi", "tvm.s_tir.meta_schedule", "tvm.s_tir.dlight")

    def missing(self) -> str | None:
        """TVM itself; that nvcc is absent shows at the first build for cuda."""
        return None if registry.available("tvm") else f"TVM is not installed: {REMEDY}"

    def build(self, task: Task, schedule: Schedule, folder: Path) -> Artifact:
        """Compiles and links one schedule."""
        sketch = cast(TvmSketch, task.sketch_of(schedule))
        tvm = registry.optional("tvm", EXTRA)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            module = sketch.scheduled(task, schedule).mod
            if task.target.kind == "llvm":
                vectorise_exponential()
                code = _object_code(tvm.compile(module, target=tvm_target(task)).mod, folder)
                return Artifact(*code, Resources())
            return _built_for_cuda(tvm, module, task, folder)
        except InvalidSchedule as error:
            raise BuildError(error.message) from error
        except subprocess.CalledProcessError as error:
            raise BuildError(f"{Path(error.cmd[0]).name}: {_complaint(error.stderr)}") from error
        except (RuntimeError, ValueError, TypeError) as error:
            raise BuildError(one_line(error)) from error

    def load(self, task: Task, schedule: Schedule, artifact: Artifact, folder: Path) -> Kernel:
        """Opens the shared object; on a CPU its parallel loops get the threads that the target names."""
        del schedule
        tvm = registry.optional("tvm", EXTRA)
        if task.target.kind == "llvm":
            use_threads(tvm, cores_of(task))
        else:
            _compile_with(tvm, CudaCompiler(task.target.arch, folder))
        return TvmKernel(tvm.runtime.load_module(artifact.path), task.target.kind)

    def versions(self) -> dict[str, str]:
        """TVM and its foreign function interface, which must fit each other."""
        return {name: metadata.version(name) for name in PACKAGES}


@lru_cache(maxsize=1)
def _pool(tvm: Any) -> Any:
    """TVM's thread pool, sized before its first use; else TVM takes every second core for a hyperthread."""
    calm_thread_pools()
    return tvm.get_global_func("runtime.config_threadpool")


def use_threads(tvm: Any, count: int) -> None:
    """Lets parallel loops run on `count` threads from now on."""
    _pool(tvm)(1, count)


@lru_cache(maxsize=1)
def vectorise_exponential() -> None:
    """Makes TVM's llvm target compute float32 exponentials in vectors; its own rule calls `expf` for each element."""
    tirx = registry.optional("tvm.tirx", EXTRA)
    own = registry.optional("tvm.ir", EXTRA).Op.get("tirx.exp").get_attr("llvm.FLowerIntrinsic")

    def lower(call: Any) -> Any:
        kind = dtype_of(call)
        return _exponential(tirx, call.args[0], kind) if kind.startswith("float32") else own(call)

    tirx.register_intrin_lowering("tirx.exp", target="llvm", f=lower, level=99)


def _exponential(tirx: Any, x: Any, kind: str) -> Any:
    """2**n * exp(x - n * log(2)), within two units in the last place."""
    integer = kind.replace("float", "int")

    def constant(value: float) -> Any:
        return tirx.const(value, kind)

    x = tirx.max(tirx.min(x, constant(EXP_MOST)), constant(EXP_LEAST))
    # The exponent's bits are positive, so that the conversion's truncation rounds to nearest after adding a half.
    bits = tirx.Cast(integer, x * constant(math.log2(math.e)) + constant(127.5))
    n = tirx.Cast(kind, bits) - constant(127.0)
    r = x - n * constant(LOG2_HIGH) - n * constant(LOG2_LOW)
    series = constant(EXP_POLYNOMIAL[0])
    for coefficient in EXP_POLYNOMIAL[1:]:
        series = series * r + constant(coefficient)
    power = tirx.reinterpret(kind, tirx.shift_left(bits, tirx.const(23, integer)))
    return (series * r * r + r + constant(1.0)) * power


def _object_code(compiled: Any, folder: Path) -> tuple[str, str]:
    """Links a compiled module into `folder`, named by its object code, of which the hash is given too."""
    code: list[bytes] = []

    def link(output: str, objects: Sequence[str], **_options: Any) -> None:
        code.extend(Path(o).read_bytes() for o in objects)
        _run([_linker(), "-shared", "-o", output, *objects])

    with tempfile.TemporaryDirectory(dir=folder, prefix=".tvm-") as scratch:
        draft = Path(scratch, "kernel.so")
        compiled.export_library(str(draft), fcompile=link)
        sha = hashlib.sha256(b"".join(code)).hexdigest()
        path = folder / f"{sha[:32]}.so"
        draft.replace(path)
    return str(path), sha


def _linker() -> str:
    found = next(filter(None, map(shutil.which, ("ld.lld", "ld", "cc"))), None)
    if found is None:
        raise BuildError("no linker (ld or cc) on PATH: install binutils")
    return found


def _run(command: Sequence[str]) -> str:
    """Runs a compiler tool and gives what it wrote to its error stream."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def _complaint(text: str) -> str:
    """The first line of a tool's output that says error, else its last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "failed silently")[:300]


def _built_for_cuda(tvm: Any, module: Any, task: Task, folder: Path) -> Artifact:
    compiler = CudaCompiler(task.target.arch, folder)
    _compile_with(tvm, compiler)
    compiled = tvm.compile(module, target=tvm_target(task)).mod
    sources = [str(m.inspect_source()) for m in compiled.imports if m.kind == "cuda"]
    if not sources:
        raise BuildError("TVM made no CUDA kernel of it")
    binaries = b"".join(compiler(source) for source in sources)
    path, _ = _object_code(compiled, folder)
    return Artifact(path, hashlib.sha256(binaries).hexdigest(), compiler.resources(sources))


def _compile_with(tvm: Any, compiler: CudaCompiler) -> None:
    """What TVM calls wherever it needs the binary of CUDA source: in a builder or when a worker loads it."""
    tvm.register_global_func("tvm_callback_cuda_compile", compiler, override=True)


class CudaCompiler:
    """From CUDA source to a cubin, compiled once and kept in the run's folder by the source's hash.

    Args:
        arch: `sm_80`.
        folder: Where the cubins and ptxas's reports are kept.
    """

    def __init__(self, arch: str, folder: Path) -> None:
        self._arch = arch
        self._folder = folder

    def __call__(self, source: str) -> bytes:
        """The cubin of `source`."""
        kept = self._kept(source)
        if not kept.is_file():
            self._compile(source, kept)
        return kept.read_bytes()

    def resources(self, sources: Sequence[str]) -> Resources:
        """The most that any kernel of `sources` uses."""
        report = "\n".join(self._kept(source).with_suffix(".ptxas").read_text() for source in sources)
        registers = [int(n) for n in _USED.findall(report)]
        spills = [int(stores) + int(loads) for stores, loads in _SPILLED.findall(report)]
        threads = [int(n) for n in _LAUNCH_BOUNDS.findall("\n".join(sources))]
        return Resources(
            registers=max(registers, default=None),
            shared_bytes=max(map(int, _SHARED.findall(report)), default=0),
            spill_bytes=max(spills, default=None),
            threads=max(threads, default=None),
        )

    def _kept(self, source: str) -> Path:
        return self._folder / f"{hashlib.sha256(f'{self._arch} {source}'.encode()).hexdigest()[:32]}.cubin"

    def _compile(self, source: str, kept: Path) -> None:
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            raise BuildError("nvcc is not on PATH: install the CUDA toolkit to compile TVM kernels for cuda")
        with tempfile.TemporaryDirectory(dir=self._folder, prefix=".nvcc-") as scratch:
            text, binary = Path(scratch, "kernel.cu"), Path(scratch, "kernel.cubin")
            text.write_text(source)
            options = ["-cubin", "-O3", "-std=c++17", f"-arch={self._arch}", "-Xptxas", "-v"]
            report = Path(scratch, "kernel.ptxas")
            report.write_text(_run([nvcc, *options, "-o", str(binary), str(text)]))
            report.replace(kept.with_suffix(".ptxas"))
            binary.replace(kept)


GENERATOR = TvmGenerator()
