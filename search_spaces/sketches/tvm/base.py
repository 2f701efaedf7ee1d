"""What every TVM sketch gives the TVM code generator: the scheduled module of one schedule."""

from __future__ import annotations

from abc import abstractmethod
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from search_spaces import registry
from search_spaces.errors import AutotuneError, InvalidSchedule
from search_spaces.operator import Operator
from search_spaces.sketch import Sketch
from search_spaces.sketches.tvm_names import walk
from search_spaces.space import Schedule

if TYPE_CHECKING:
    from search_spaces.target import Target
    from search_spaces.task import Task

EXTRA = "tvm"
# Shared memory that a CUDA block may use without opting in; what TVM declares statically must fit in it.
STATIC_SHARED_BYTES = 48 * 1024
UNKNOWN_TO_NUMPY = ("bfloat16", "float8_e4m3fn")


class TvmSketch(Sketch):
    """A sketch over an operator's TE definition."""

    generator = "tvm"

    def refuses(self, task: Task) -> str | None:
        """Where TVM is missing or the operator has no TE definition; then whatever `refuses_task` says."""
        if task.target.kind == "hip":
            return "TVM's wheels have no code generator for AMD's GPUs"
        if not registry.available("tvm"):
            return "TVM is not installed: pip install 'apache-tvm==0.27.0.post1' 'apache-tvm-ffi>=0.1.14.post0,<0.1.15'"
        if type(task.operator).compute is Operator.compute:
            return f"operator {task.workload.operator} has no TE definition"
        unknown = {t.dtype for t in task.operator.tensors(task.workload)} & set(UNKNOWN_TO_NUMPY)
        if task.target.kind == "llvm" and unknown:
            return f"{min(unknown)} on a CPU: numpy has no such dtype to check it with"
        return self.refuses_task(task)

    @abstractmethod
    def refuses_task(self, task: Task) -> str | None:
        """Why this sketch does not apply to a task that TVM itself can express; None where it does."""

    @abstractmethod
    def scheduled(self, task: Task, schedule: Schedule) -> Any:
        """The `tvm.s_tir.Schedule` of `schedule`, postprocessed and ready to compile.

        Raises:
            InvalidSchedule: TVM refuses the decisions, with its reason.
        """


def cores_of(task: Task) -> int:
    """Threads that an llvm schedule of `task` is made for."""
    return task.target.cores or max(task.hardware.model.sms, 1)


def tvm_target(task: Task) -> Any:
    """The `tvm.target.Target` that `task` is scheduled and compiled for; never asks for a device."""
    return _tvm_target(task.target, cores_of(task))


@lru_cache(maxsize=64)
def _tvm_target(target: Target, cores: int) -> Any:
    tvm = registry.optional("tvm", EXTRA)
    cpu = tvm.get_global_func("target.llvm_get_system_cpu")()
    if target.kind == "llvm":
        mcpu = target.arch or cpu
        if not tvm.get_global_func("target.llvm_is_valid_cpu")(mcpu, _host_triple(tvm)):
            raise AutotuneError(f"LLVM knows no CPU '{mcpu}'", "name one that `llc -mcpu=help` lists")
        return tvm.target.Target({"kind": "llvm", "mcpu": mcpu, "num-cores": cores})
    return tvm.target.Target(
        {
            "kind": "cuda",
            "arch": target.arch,
            "max_threads_per_block": 1024,
            "max_shared_memory_per_block": STATIC_SHARED_BYTES,
            "thread_warp_size": 32,
            "host": {"kind": "llvm", "mcpu": cpu},
        }
    )


def _host_triple(tvm: Any) -> str:
    return str(tvm.get_global_func("target.llvm_get_system_triple")())


@lru_cache(maxsize=64)
def workload_module(task: Task) -> Any:
    """The unscheduled `IRModule` of `task`, with the function `main`, as MetaSchedule keys its records."""
    tvm = registry.optional("tvm", EXTRA)
    te, topi = registry.optional("tvm.te", EXTRA), registry.optional("tvm.topi", EXTRA)
    tensors = task.operator.compute(task.workload, te, topi)
    if tensors is None:
        raise AutotuneError(f"{task.workload} has no TE definition")
    return tvm.get_global_func("tvm.s_tir.meta_schedule.normalize_mod")(te.create_prim_func(list(tensors)))


def empty_schedule(task: Task) -> Any:
    """A `tvm.s_tir.Schedule` of `task` with an empty trace, whose errors are short texts instead of program dumps."""
    s_tir = registry.optional("tvm.s_tir", EXTRA)
    return s_tir.Schedule(workload_module(task), seed=1, error_render_level="fast")


def nodes(tree: Any, *kinds: Any) -> list[Any]:
    """Every node of the given classes in a TIR statement or expression."""
    found: list[Any] = []
    walk(tree, kinds, found.append)
    return found


def one_line(error: BaseException) -> str:
    """The telling line of an error of TVM, most of whose texts are long dumps."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [line for line in lines if line and not line.startswith(("Traceback", "File ", "#", "["))]
    return (telling[0] if telling else type(error).__name__)[:300]


def refused(error: BaseException) -> InvalidSchedule:
    """TVM's refusal of a schedule as the error that a search records."""
    return InvalidSchedule(f"TVM refuses it: {one_line(error)}")
