"""Finds the fastest schedule of a kernel for given shapes, proves it, and leaves a tuned log.

The vocabulary can be imported from here whatever file it lives in; each name is loaded when it is first asked for.
"""

from __future__ import annotations

from typing import Any

from search_spaces import registry

_HOME = {
    "autotune.generators.base": ("Artifact", "BuildError", "Generator", "Kernel", "Resources"),
    "autotune.journal": ("RunLog", "load_runs", "read_journal"),
    "autotune.measurement": ("Measurement", "Policy", "Status"),
    "autotune.reuse.load": ("Tuned", "TunedKernel", "load"),
    "autotune.strategies.base": ("Result", "Strategy"),
    "autotune.task_options": ("TaskOptions", "make_task"),
    "autotune.tune": ("Outcome", "Settings"),
    "autotune.trial_table": ("frame",),
    "autotune.tuned_log": ("Entry", "TunedLog", "read_tuned_log"),
    "cost_models.model": ("CostModel",),
    "search_spaces.errors": ("AutotuneError",),
    "search_spaces.hardware": ("Hardware", "Limits"),
    "search_spaces.operator": ("Axis", "Cost", "Operator", "TensorSpec", "Workload"),
    "search_spaces.sketch": ("Sketch",),
    "search_spaces.sketches.triton.base": ("TensorArgument", "TritonLaunch", "TritonSketch"),
    "search_spaces.space": ("Constraint", "Family", "Knob", "Schedule", "ScheduleSpace", "SketchSpace"),
    "search_spaces.target": ("Target", "parse_target"),
    "search_spaces.task": ("Task", "find_operator"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    """The object called `name`, from the file it lives in."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'autotune' has no attribute '{name}'")
    return getattr(registry.load_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    """The vocabulary."""
    return __all__
