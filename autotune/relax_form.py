"""An operator's workload as a Relax program, and the function that Relax makes of it: the key of its databases."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from search_spaces import registry
from search_spaces.sketches.tvm.base import EXTRA, tvm_target
from search_spaces.sketches.tvm_names import tensor_type
from search_spaces.task import Task


def relax_module(task: Task) -> Any:
    """A Relax `IRModule` whose `main` calls the operator's TE definition, as `BlockBuilder.call_te` would.

    Relax indexes with int64; the tuned function itself with int32.
    """
    relax = registry.optional("tvm.relax", EXTRA)
    te, topi = registry.optional("tvm.te", EXTRA), registry.optional("tvm.topi", EXTRA)
    tensors = task.operator.tensors(task.workload)
    definition = task.operator.compute(task.workload, te, topi)
    assert definition is not None, f"{task.workload} has no TE definition"
    function = te.create_prim_func(list(definition), index_dtype_override="int64")
    inputs = [relax.Var(t.name, tensor_type(t.shape, t.dtype)) for t in tensors if not t.output]
    results = [tensor_type(t.shape, t.dtype) for t in tensors if t.output]
    builder = relax.BlockBuilder()
    with builder.function("main", inputs):
        with builder.dataflow():
            variable = builder.add_func(function.without_attr("global_symbol"), task.workload.operator)
            call = relax.call_tir(variable, inputs, results if len(results) > 1 else results[0])
            output = builder.emit_output(builder.emit(call))
        builder.emit_func_output(output)
    return builder.get()


@lru_cache(maxsize=64)
def relax_key(task: Task) -> Any:
    """The `IRModule` by which Relax's pipelines look the workload up in a database.

    It is also that of TVM's own operator wherever that is the same computation: `relax.op.matmul` and
    `relax.op.nn.softmax` in float32.
    """
    relax = registry.optional("tvm.relax", EXTRA)
    integration = registry.optional("tvm.s_tir.meta_schedule.relax_integration", EXTRA)
    target = tvm_target(task)
    with target:
        legalised = relax.get_pipeline("zero")(relax_module(task))
    (found,) = integration.extract_tasks(legalised, target)
    return found.dispatched[0]


def is_scheduled(function: Any) -> bool:
    """Whether a database's schedule was applied to a function of a module."""
    return bool(function.attrs) and bool(function.attrs.get("tirx.is_scheduled", False))


def same_program(left: Any, right: Any) -> bool:
    """Whether two PrimFuncs are the same but for their names and attributes."""
    equal = registry.optional("tvm_ffi", EXTRA).structural_equal
    return bool(equal(_bare(left), _bare(right)))


def _bare(function: Any) -> Any:
    for name in list(function.attrs.keys()) if function.attrs else ():
        function = function.without_attr(name)
    return function
