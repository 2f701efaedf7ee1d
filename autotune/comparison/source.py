"""Hash of the code that decides what a strategy does, so that an old result is taken for no other code's."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType

from autotune.comparison import replay
from autotune.comparison.rivals.base import rival_of
from autotune.environment import versions_of
from autotune.prior import choosing
from autotune.recordings import recording
from autotune.strategies.base import Strategy
from autotune.tune import STRATEGIES
from autotune.tuner import Learner
from cost_models import features
from cost_models.model import MODELS
from search_spaces import registry

_OURS = ("autotune", "cost_models", "search_spaces")
# Libraries on which a search's path depends.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu", "optuna")


def strategy_hash(name: str) -> str:
    """Hash of a strategy's module, its cost model's, all of this project that they import, and library versions.

    A rival's code is its library and the file that runs it.

    Raises:
        AutotuneError: There is no such strategy or model.
    """
    if (rival := rival_of(name)) is not None:
        runner = sys.modules[type(rival[0]).__module__]
        return _digest([_text(runner), _text(replay), *_versions((rival[0].distribution, *_LIBRARIES)), name])
    strategy: type[Strategy] = registry.find(STRATEGIES, name, "strategy")
    roots = [sys.modules[strategy.__module__], features, recording]
    if strategy.model:
        roots.append(sys.modules[registry.find(MODELS, strategy.model, "model").__module__])
    if strategy.uses_prior:
        roots.append(choosing)
    files = _imported(roots)
    # Where these two are, the whole tuner is imported, most of which has no say in a replay.
    texts = {**files, replay.__name__: _text(replay), Learner.__qualname__: inspect.getsource(Learner)}
    return _digest([*(f"{n}\n{texts[n]}" for n in sorted(texts)), *_versions(_LIBRARIES), name])


def uses_prior(name: str) -> bool:
    """Whether a strategy is given what was learnt of other tasks; no rival is."""
    return rival_of(name) is None and bool(registry.find(STRATEGIES, name, "strategy").uses_prior)


def _versions(libraries: Iterable[str]) -> Iterator[str]:
    return (f"{library} {version}" for library, version in versions_of(libraries).items())


def _imported(roots: Iterable[ModuleType]) -> Mapping[str, str]:
    """Texts of `roots` and of every module of this project that they import, by name."""
    texts: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        module = waiting.pop()
        if module.__name__ in texts:
            continue
        texts[module.__name__] = _text(module)
        names = _import_names(texts[module.__name__])
        waiting += [sys.modules[n] for n in names if n.split(".")[0] in _OURS and n in sys.modules]
    return texts


def _import_names(text: str) -> Iterator[str]:
    """Dotted names that an import statement of a module may mean."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _text(module: ModuleType) -> str:
    if not module.__file__:
        return ""
    with open(module.__file__, encoding="utf-8") as file:
        return file.read()


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n\0".join(parts).encode()).hexdigest()[:16]
