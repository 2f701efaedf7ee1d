"""One import serves the vocabulary, and costs nothing until a name is asked for."""

import subprocess
import sys

import pytest

import autotune


@pytest.mark.parametrize("name", autotune.__all__)
def test_every_name_is_there(name):
    assert getattr(autotune, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = autotune.Nothing


def test_importing_it_loads_nothing_heavy():
    code = "import sys, autotune; print([m for m in ('numpy', 'tvm', 'click', 'msgspec') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
