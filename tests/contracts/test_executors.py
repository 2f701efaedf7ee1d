"""What every executor must do, whatever its machines are."""

import inspect

import pytest

from autotune.devices.cpu import cpu_info
from autotune.executors.base import EXECUTORS, Executor, Site
from search_spaces import registry
from search_spaces.errors import AutotuneError, UnknownName

NAMES = registry.names(EXECUTORS)


@pytest.mark.parametrize("name", NAMES)
def test_an_executor_is_found_by_its_name_and_is_whole(name):
    kind = Site(name.replace("_", "-")).kind
    assert issubclass(kind, Executor)
    assert not inspect.isabstract(kind)
    assert inspect.getdoc(kind) != inspect.getdoc(Executor)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "local"])
def test_machines_that_are_not_there_are_told_in_a_line(name):
    if name == "ray" and not registry.available("ray"):
        pytest.skip("Ray is not installed")
    with pytest.raises(AutotuneError) as told:
        Site(name, address="127.0.0.1:9", key="key").ask("llvm", cpu_info)
    assert told.value.hint
    assert "\n" not in str(told.value)


def test_a_name_that_is_none():
    with pytest.raises(UnknownName, match="did you mean 'local'"):
        assert Site("locale").kind
