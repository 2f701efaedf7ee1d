"""The folder is the registry: a plug-in's name is its file's name.

`find("autotune.strategies", "xgb", "strategy")` imports `autotune/strategies/xgb.py` and takes its attribute
`STRATEGY`. A dotted module (`mypkg.annealing`) or a file (`my_op.py:MyOp`) works in the same place.
This is the only module that imports by name.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from search_spaces.errors import AutotuneError, MissingDependency, UnknownName

# Module -> its file, of those that `load_file` imported.
_files: dict[str, Path] = {}


def names(package: str) -> tuple[str, ...]:
    """Plug-ins of `package` in alphabetical order; importing none of them."""
    folder = importlib.import_module(package)
    return tuple(sorted(m.name for m in pkgutil.iter_modules(folder.__path__) if not m.ispkg and m.name != "base"))


def find(package: str, name: str, what: str) -> Any:
    """The plug-in called `name`: attribute `what` in capitals of its module.

    Args:
        package: Folder of the plug-ins, dotted.
        name: A file's name in it, a dotted module elsewhere, or `file.py`; with `:Name` another attribute of it.
        what: The kind of plug-in in singular ("operator"), for the attribute and for errors.

    Raises:
        UnknownName: No such plug-in.
        AutotuneError: The file or module does not hold one.
    """
    attribute = what.upper().replace(" ", "_")
    place, _, chosen = name.partition(":")
    if place.endswith(".py"):
        return _attribute(load_file(Path(place)), chosen or attribute, name, what)
    if place in names(package):
        return _attribute(_import(f"{package}.{place}", f"{what} {place}"), chosen or attribute, name, what)
    if "." in place and not place.startswith("."):
        try:
            module = _import(place, f"{what} {name}")
        except ModuleNotFoundError as error:
            raise UnknownName.of(what, name, names(package)) from error
        return _attribute(module, chosen or attribute, name, what)
    raise UnknownName.of(what, name, names(package))


def load_module(name: str) -> ModuleType:
    """A module of this project by its dotted name."""
    return importlib.import_module(name)


def _import(module: str, user: str) -> ModuleType:
    """Imports `module`; a package that it imports itself and that is missing is no wrong name.

    Raises:
        ModuleNotFoundError: `module` itself is not there.
        MissingDependency: A package that it needs is not there.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or f"{module}.".startswith(f"{error.name}."):
            raise
        package = error.name.partition(".")[0]
        raise MissingDependency(f"{user} needs {package}, which is not installed", f"pip install {package}") from error


def _attribute(module: ModuleType, attribute: str, name: str, what: str) -> Any:
    found = getattr(module, attribute, None)
    if found is None:
        raise AutotuneError(f"'{name}' holds no {what} called {attribute}", f"define it in {module.__file__}")
    return found


def load_file(path: Path, copy: Path | None = None) -> ModuleType:
    """Imports a Python file once, under a name that cannot hide an installed module.

    Args:
        path: The file.
        copy: Where its text is, if it is another machine's file; from then on both name this module.
    """
    path = path.expanduser().resolve()
    name = _module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    place = copy or path
    if not place.is_file():
        raise AutotuneError(f"no file {path}", "write path/to/my_op.py:MyOp")
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    added = {name, _module_name(place.resolve())}
    sys.modules.update(dict.fromkeys(added, module))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        for made in added:
            del sys.modules[made]
        raise AutotuneError(
            f"{path} cannot be imported: {type(error).__name__}: {error}", "mend it and run again"
        ) from error
    # After those that it has imported itself.
    _files[name] = path
    return module


def _module_name(path: Path) -> str:
    return f"_autotune_file_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"


def loaded_files() -> tuple[Path, ...]:
    """Files that `load_file` imported, each after those that it needs: a process elsewhere must have them, too."""
    return tuple(_files.values())


def optional(module: str, extra: str) -> ModuleType:
    """Imports an optional package, or says which extra brings it.

    Raises:
        MissingDependency: The package is absent or does not import.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependency(
            f"{package} is not usable here ({error})", f"pip install 'kernel-autotune[{extra}]'"
        ) from error


def available(module: str) -> bool:
    """Whether the top-level package `module` is installed, without importing it."""
    return importlib.util.find_spec(module) is not None
