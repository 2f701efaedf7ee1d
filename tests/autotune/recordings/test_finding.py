"""Recordings are opened by what is in them and found by folder, file, pattern or name."""

import json
import math
from pathlib import Path

import pytest

from autotune.recordings.finding import find_recordings, read_recording
from autotune.recordings.kernel_tuner import write_kernel_tuner
from autotune.recordings.native import SUFFIX, write_recording
from autotune.recordings.t4 import write_t4
from search_spaces.errors import BadLog, UnknownName

SPACES = Path(__file__).parents[3] / "experiments" / "spaces"
TABLE = """bx,by,status,time_ms,time_std_ms,n_repeats,compile_ms,benchmark_ms
16,1,ok,2.5,0.1,32,900,5
16,2,compile_error,,,,800,
32,1,ok,1.25,0.2,32,850,4
"""


@pytest.fixture
def folder(recording, tmp_path):
    for name in ("gemm__a100", "gemm__h200", "softmax__h200"):
        write_recording(recording, tmp_path / "spaces" / f"{name}{SUFFIX}")
    (tmp_path / "spaces" / "pnpoly__rtx3090.csv").write_text(TABLE)
    return tmp_path / "spaces"


def names(found):
    return [p.name.partition(".")[0] for p in found]


def test_names_beginnings_files_folders_and_patterns(folder):
    everything = ["gemm__a100", "gemm__h200", "pnpoly__rtx3090", "softmax__h200"]
    assert names(find_recordings(["gemm__a100"], folder)) == ["gemm__a100"]
    assert names(find_recordings(["gemm"], folder)) == ["gemm__a100", "gemm__h200"]
    assert names(find_recordings([folder], Path("nowhere"))) == everything
    assert names(find_recordings([str(folder / "*__h200*")], folder)) == ["gemm__h200", "softmax__h200"]
    one = folder / f"softmax__h200{SUFFIX}"
    assert find_recordings([one, "softmax", folder], folder)[0] == one
    assert len(find_recordings([one, "softmax", folder], folder)) == 4, "each once"


def test_what_is_not_there_is_named(folder, tmp_path):
    with pytest.raises(UnknownName, match="did you mean 'gemm__a100'"):
        find_recordings(["gemm__a10O"], folder)
    with pytest.raises(UnknownName):
        find_recordings([str(folder / "*__nothing*")], folder)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadLog, match="holds no recording"):
        find_recordings([tmp_path / "empty"], folder)


@pytest.mark.parametrize("write", [write_recording, write_kernel_tuner, write_t4])
def test_any_format_is_told_by_what_is_in_it(recording, tmp_path, write):
    write(recording, tmp_path / "made__h200")
    assert read_recording(tmp_path / "made__h200").space.schedules == recording.space.schedules


def test_a_table_is_read_with_the_device_that_its_name_is_short_for(folder):
    found = read_recording(folder / "pnpoly__rtx3090.csv")
    assert found.device == "NVIDIA GeForce RTX 3090"
    assert [str(s) for s in found.status] == ["ok", "build_error", "ok"]
    assert found.optimum == pytest.approx(1.25e-3)
    assert found.cost[1] == pytest.approx(0.8)
    assert found.context["device units"] == math.log2(82)
    assert found.context["axis M"] == math.log2(20_000_000)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "a,b\n1,2\n",
        "a,status,time_ms\n1,odd,2\n",
        "status,time_ms\nok,1\nok,2\n",
        "a,status,time_ms\nx,ok,1\n",
        "a,status,time_ms\n1,ok,soon\n",
        "a,status,time_ms\n,ok,1\n",
        "a,status,time_ms\n1,ok,-1\n",
        '"a\n',
    ],
)
def test_what_is_no_table_is_said_in_one_line(tmp_path, content):
    (tmp_path / "x__y.csv").write_text(content)
    with pytest.raises(BadLog) as caught:
        read_recording(tmp_path / "x__y.csv")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", sorted(SPACES.rglob(f"*{SUFFIX}")), ids=lambda p: p.name)
def test_every_shipped_space_says_where_it_is_from(path):
    found = read_recording(path)
    assert path.name == f"{found.name}{SUFFIX}"
    assert {"source", "licence", "date"} <= set(found.provenance)
    assert {"device units", "device bandwidth", "operations", "intensity"} <= set(found.context)
    assert math.isfinite(found.optimum)
    assert json.loads(found.provenance.get("constants", "{}")).keys().isdisjoint(found.space.sketches[0].position)
