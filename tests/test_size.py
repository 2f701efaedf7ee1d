"""Limits that keep the packages readable."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(p for package in ("autotune", "search_spaces", "cost_models") for p in (ROOT / package).rglob("*.py"))
NAMELESS = {"utils", "util", "helpers", "helper", "common", "core", "manager", "misc"}


@pytest.fixture(params=FILES, ids=lambda p: str(p.relative_to(ROOT)))
def file(request):
    return request.param


def test_files_are_short(file):
    assert len(file.read_text().splitlines()) <= 400


def test_functions_are_short(file):
    if file.parent.name == "kernels":
        return  # the body of one GPU program
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{node.name} is {node.end_lineno - node.lineno + 1} lines long"


def test_a_name_says_what_the_module_holds(file):
    assert not NAMELESS & set(file.relative_to(ROOT).with_suffix("").parts)


def test_one_module_imports_by_name(file):
    if file != ROOT / "search_spaces" / "registry.py":
        assert not re.search(
            r"\bimportlib\.import_module|\b__import__\(|from importlib import import_module", file.read_text()
        )


def test_nothing_is_left_to_do(file):
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", file.read_text())
