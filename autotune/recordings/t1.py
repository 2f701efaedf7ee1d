"""T1, the input format of the auto-tuning community: parameters and conditions become a space. Nothing in it is run."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from autotune.recordings.bounded import faults_as_bad_log, unpacked
from autotune.recordings.expression import Expression
from autotune.recordings.foreign import value_of
from search_spaces.knob import Constraint, Family, Knob
from search_spaces.schedule import Value
from search_spaces.space import ScheduleSpace, SketchSpace, digest

_Few = Meta(max_length=1000)


class Parameter(msgspec.Struct, rename="pascal"):
    """A tuning parameter; its values are an expression."""

    name: str
    values: str
    type: str = "int"


class Condition(msgspec.Struct, rename="pascal"):
    """A limit over parameters."""

    expression: str


class ConfigurationSpace(msgspec.Struct, rename="pascal"):
    """The parameters with their limits."""

    tuning_parameters: Annotated[list[Parameter], _Few]
    conditions: Annotated[list[Condition], _Few] = []


class KernelSpecification(msgspec.Struct, rename="pascal"):
    """Of the kernel only its name is read."""

    kernel_name: str


class Problem(msgspec.Struct, rename="pascal"):
    """The parts of a file that are read."""

    configuration_space: ConfigurationSpace
    kernel_specification: KernelSpecification


def read_t1(path: Path) -> ScheduleSpace:
    """The space that a T1 file describes; parameters with a single value become constants of its conditions.

    Raises:
        BadLog: It cannot be read, or is no T1 file.
    """
    with faults_as_bad_log(path, "T1 file"):
        data = unpacked(path)
        return _space(msgspec.convert(json.loads(data), Problem), digest(data.decode()))


def _space(problem: Problem, identity: str) -> ScheduleSpace:
    parameters = problem.configuration_space.tuning_parameters
    values = {p.name: _values(p) for p in parameters}
    constants = {n: v[0] for n, v in values.items() if len(v) == 1}
    knobs = tuple(Knob(n, Family.TILE_SIZES, v) for n, v in values.items() if n not in constants)
    limits = []
    for condition in problem.configuration_space.conditions:
        expression = Expression(condition.expression)
        named = tuple(n for n in expression.names if n not in constants)
        holds = _Holds(expression, named, constants)
        if named:
            limits.append(Constraint(f"breaks {condition.expression}", named, holds))
        elif not holds():
            raise ValueError(f"no configuration keeps {condition.expression:.60}")
    name = problem.kernel_specification.kernel_name
    return ScheduleSpace((SketchSpace(name, knobs, tuple(limits)),), identity)


def _values(parameter: Parameter) -> tuple[Value, ...]:
    """The values of a parameter, each once."""
    text = parameter.values
    found = ast.literal_eval(text) if parameter.type == "bool" else Expression(text)({})
    if not isinstance(found, list | tuple) or not found:
        raise ValueError(f"parameter {parameter.name:.30} has no list of values")
    return tuple(dict.fromkeys(value_of(v) for v in found))


class _Holds:
    """Whether values keep a condition; one that has no value for them (a division by zero, say) is not kept."""

    def __init__(self, expression: Expression, names: tuple[str, ...], constants: Mapping[str, Value]) -> None:
        self._expression = expression
        self._names = names
        self._constants = constants

    def __call__(self, *values: Value) -> bool:
        try:
            return bool(self._expression({**self._constants, **dict(zip(self._names, values, strict=True))}))
        except ValueError:
            return False
