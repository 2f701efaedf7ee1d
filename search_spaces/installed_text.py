"""Functions taken from the text of an installed package, which may need a GPU to be imported as a whole."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from search_spaces.errors import MissingDependency

# In the place of a default where there is none.
REQUIRED = object()


def source_file(package: str, file: str) -> Path | None:
    """The file of an installed package, or None where there is none; imports nothing.

    Args:
        package: A top-level package.
        file: Its path in the package's folder.
    """
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    places = [Path(folder) / file for folder in folders or ()]
    return next((place for place in places if place.is_file()), None)


def function_of(package: str, file: str, names: tuple[str, ...], namespace: Mapping[str, Any]) -> Any:
    """Runs the definitions called `names` of a package's file, and nothing else of it.

    Args:
        package: A top-level package.
        file: Its path in the package's folder.
        names: Functions, those first that later ones call.
        namespace: What their text refers to, decorators and annotations included.

    Returns:
        The last of them.

    Raises:
        MissingDependency: The package is not installed, or its file defines no such function.
    """
    path, definitions = _defined(package, file, names)
    # Under the file's own name, so that who asks for a function's source finds it.
    program = compile(ast.Module([*definitions], []), str(path), "exec")
    made = {"__name__": f"{package}.{names[-1]}", **namespace}
    exec(program, made)
    return made[names[-1]]


def parameters_of(package: str, file: str, name: str) -> dict[str, Any]:
    """The parameters of a function of a package's file in their order, each with its default, REQUIRED without one.

    Args:
        package: A top-level package.
        file: Its path in the package's folder.
        name: The function; its defaults are literals.

    Raises:
        MissingDependency: The package is not installed, or its file defines no such function.
    """
    _, (definition,) = _defined(package, file, (name,))
    given = definition.args.args
    defaults = [ast.literal_eval(default) for default in definition.args.defaults]
    return dict(zip((a.arg for a in given), [REQUIRED] * (len(given) - len(defaults)) + defaults, strict=True))


def _defined(package: str, file: str, names: tuple[str, ...]) -> tuple[Path, list[ast.FunctionDef]]:
    """The file, and the definitions called `names` in it."""
    path = source_file(package, file)
    remedy = f"pip install --no-deps {package}"
    if path is None:
        raise MissingDependency(f"{package} is not installed, or has no {file}", remedy)
    defined = _functions(path)
    absent = [name for name in names if name not in defined]
    if absent:
        raise MissingDependency(f"this version of {package} has no {absent[0]} in {file}", remedy)
    return path, [defined[name] for name in names]


@cache
def _functions(path: Path) -> Mapping[str, ast.FunctionDef]:
    """By name; a sketch asks at every launch, and an engine's file is long."""
    return {n.name: n for n in ast.parse(path.read_bytes()).body if isinstance(n, ast.FunctionDef)}
