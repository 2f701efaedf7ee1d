"""Expressions from strangers' files: arithmetic over named values; nothing else can be run, and nothing for long."""

from __future__ import annotations

import ast
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Largest number, list and nesting that can occur on the way to a result.
_MOST = 2**63
_LONGEST = 100_000
_DEEPEST = 100
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "list": lambda values: values,
    "min": min,
    "max": max,
    "abs": abs,
    "int": int,
    "round": round,
}


class Expression:
    """An expression that was read and can be evaluated over values of its names.

    Args:
        text: As in Python: arithmetic, comparisons, `and`, `or`, `not`, lists, `range`, one loop in a list.

    Attributes:
        names: The names in it, functions left out.

    Raises:
        ValueError: It is none, or holds anything else.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST:
            raise ValueError("an expression is too long")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                self._tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, MemoryError, RecursionError) as error:
            raise ValueError(f"'{text:.60}' is no expression") from error
        named = (n.id for n in ast.walk(self._tree) if isinstance(n, ast.Name))
        self.names = tuple(dict.fromkeys(n for n in named if n not in _FUNCTIONS and n != "range"))

    def __call__(self, values: Mapping[str, object]) -> Any:
        """Its value.

        Raises:
            ValueError: It has none for these values, or one that is too large.
        """
        try:
            return _value(self._tree, values, 0)
        except (TypeError, ArithmeticError, KeyError) as error:
            raise ValueError(f"an expression has no value ({error})") from error


def _value(node: ast.expr, values: Mapping[str, object], depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError("an expression is nested too deeply")

    def of(part: ast.expr) -> Any:
        return _value(part, values, depth + 1)

    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
        return _bounded(node.value)
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _combined(_BINARY[type(node.op)], of(node.left), of(node.right))
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _UNARY[type(node.op)](of(node.operand))
    if isinstance(node, ast.BoolOp):
        return _chosen(isinstance(node.op, ast.Or), map(of, node.values))
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARED for op in node.ops):
        parts = [of(node.left), *map(of, node.comparators)]
        return all(_COMPARED[type(op)](parts[i], parts[i + 1]) for i, op in enumerate(node.ops))
    if isinstance(node, ast.List | ast.Tuple):
        return [of(part) for part in node.elts]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _called(node.func.id, [of(part) for part in node.args])
    if isinstance(node, ast.ListComp):
        return _looped(node, values, depth)
    raise ValueError(f"an expression holds {type(node).__name__}")


def _chosen(ends: bool, parts: Iterable[Any]) -> Any:
    """The first of the parts that counts as `ends`, else the last: `or` ends at what is true, `and` at what is not."""
    part: Any = None
    for part in parts:
        if bool(part) is ends:
            break
    return part


def _combined(combine: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Two numbers combined; of lists only the sum."""
    if isinstance(left, list) and isinstance(right, list) and combine is operator.add:
        return _short(left + right)
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        raise ValueError("an expression combines what are no numbers")
    if combine is operator.pow and not (0 <= right < 64 and abs(left) < 2**16):
        raise ValueError("an expression has a large power")
    return _bounded(combine(left, right))


def _called(name: str, given: list[Any]) -> Any:
    if name == "range":
        numbers = range(*given)
        if len(numbers) > _LONGEST:
            raise ValueError("an expression has a long range")
        return list(numbers)
    if name not in _FUNCTIONS:
        raise ValueError(f"an expression calls {name:.30}")
    return _bounded(_FUNCTIONS[name](*given))


def _looped(node: ast.ListComp, values: Mapping[str, object], depth: int) -> list[Any]:
    """A list made by one loop over another, with conditions or without."""
    loop = node.generators[0]
    if len(node.generators) > 1 or not isinstance(loop.target, ast.Name) or depth:
        raise ValueError("an expression has a loop in a loop")
    made = []
    for item in _short(_value(loop.iter, values, depth + 1)):
        inner = {**values, loop.target.id: item}
        if all(_value(test, inner, depth + 1) for test in loop.ifs):
            made.append(_value(node.elt, inner, depth + 1))
    return made


def _bounded(value: Any) -> Any:
    if isinstance(value, int | float) and not abs(value) < _MOST:
        raise ValueError("an expression has a number that is too large")
    return value


def _short(values: Any) -> list[Any]:
    if not isinstance(values, list) or len(values) > _LONGEST:
        raise ValueError("an expression loops over what is no short list")
    return values
