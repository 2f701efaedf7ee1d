"""The command line compiles for a GPU by AMD that is not here, and measures nothing on one."""

import json

import pytest
from click.testing import CliRunner

from autotune.cli import cli
from search_spaces.errors import ExitCode, NoDevice


def test_candidates_are_compiled_and_their_resources_listed():
    pytest.importorskip("triton")
    named = [
        "run",
        "--op",
        "softmax",
        "--target",
        "hip",
        "-arch=gfx942",
        "--shape",
        "M=64,N=1000",
        "--dtype",
        "float16",
    ]
    done = CliRunner().invoke(cli, [*named, "--compile-only", "--trials", "3", "--jobs", "1", "--quiet", "--json"])
    assert done.exit_code == ExitCode.OK, done.output
    found = json.loads(done.stdout)
    assert found["target"] == "hip -arch=gfx942"
    built = [row for row in found["compiled"] if row["resources"]]
    assert len(built) == len(found["compiled"]) >= 2
    for row in built:
        assert row["resources"]["registers"] > 0
        assert row["resources"]["spill_bytes"] == 0
        assert row["resources"]["threads"] % 64 == 0
        assert 0 < row["occupancy"] <= 1


@pytest.mark.parametrize("target", ["hip -arch=gfx942", "rocm -mcpu=gfx942"])
def test_measuring_is_refused_with_the_remedy(target):
    done = CliRunner().invoke(cli, ["run", "--op", "softmax", "--target", target, "--quiet"], catch_exceptions=True)
    assert isinstance(done.exception, NoDevice)
    assert "AMD" in str(done.exception)
    assert "--compile-only" in str(done.exception)
