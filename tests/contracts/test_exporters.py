"""What every exporter must keep."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from autotune import exporting
from autotune.exporters.base import Exporter, ExportFault
from autotune.exporting import SIDE_FILE, Exported, export, find_exporter, format_names
from autotune.recall import recall
from search_spaces.errors import CannotWrite, NothingValid
from search_spaces.registry import load_file

tuned = load_file(Path(__file__).parents[1] / "support" / "tuned.py")


def tiled():
    task = tuned.task_on(tuned.H200, "matmul", "triton.matmul_tiled", M=256, N=128, K=64)
    schedule = {**task.default.to_json(), "block_m": 64, "block_n": 32, "block_k": 32, "order": "rows", "group": 1}
    return tuned.entry_for(task, tuned.H200, {**schedule, "num_warps": 4, "num_stages": 2})


@pytest.fixture(scope="module")
def candidates():
    """Entries of both generators and of the engines that are here; each format can say one of them."""
    pytest.importorskip("tvm")
    engines = [name for name in ("vllm", "sglang") if find_exporter(name).missing() is None]
    axes = {"M": 64, "N": 256, "K": 256}
    on_engines = [
        tuned.entry_on(tuned.H200, "block_fp8_matmul", f"triton.block_fp8_matmul_{name}", axes={**axes, "N": 256 << i})
        for i, name in enumerate(engines)
    ]
    return [
        *on_engines,
        tuned.entry_on(tuned.CPU, "matmul", "tvm.matmul_packed", axes={"M": 32, "N": 32, "K": 32}),
        tiled(),
    ]


@pytest.fixture(params=format_names())
def name(request):
    missing = find_exporter(request.param).missing()
    if missing is not None:
        pytest.skip(missing)
    return request.param


@pytest.mark.parametrize("form", format_names())
def test_it_is_described(form):
    exporter = find_exporter(form)
    assert isinstance(exporter, Exporter)
    assert exporter.summary
    assert exporter.missing() is None or "\n" not in exporter.missing()


def test_what_it_writes_is_opened_again_and_accounted_for(name, candidates, tmp_path):
    made = export(candidates, name, tmp_path / "out")
    assert len(made.entries) + len(made.refused) == len(candidates)
    assert made.entries
    side = msgspec.json.decode((tmp_path / "out" / SIDE_FILE).read_bytes(), type=Exported)
    assert side == made
    on_disk = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert on_disk == {*made.files, SIDE_FILE}
    for path, sha in made.files.items():
        assert hashlib.sha256((tmp_path / "out" / path).read_bytes()).hexdigest() == sha
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_it_says_why_it_leaves_an_entry_out(name, candidates):
    exporter = find_exporter(name)
    for entry in candidates:
        reason = exporter.why_not(recall(entry))
        assert reason is None or (reason and "\n" not in reason)
    assert any(exporter.why_not(recall(entry)) is None for entry in candidates)


def test_a_failure_leaves_what_was_there(name, candidates, tmp_path, monkeypatch):
    export(candidates, name, tmp_path / "out")
    before = {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()}

    def refuse(*_):
        raise ExportFault("not taken")

    monkeypatch.setattr(type(find_exporter(name)), "reopen", refuse)
    with pytest.raises(ExportFault, match="not taken"):
        export(candidates, name, tmp_path / "out")
    assert {p: p.read_bytes() for p in (tmp_path / "out").rglob("*") if p.is_file()} == before
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_an_empty_log_is_told(name, tmp_path):
    with pytest.raises(NothingValid, match="the log is empty"):
        export([], name, tmp_path / "out")


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "precious").write_text("x")
    with pytest.raises(CannotWrite, match="is no export"):
        export([tiled()], "triton", tmp_path / "out")
    assert (tmp_path / "out" / "precious").read_text() == "x"
    (tmp_path / "out" / SIDE_FILE).write_text(json.dumps({"schema": exporting.SCHEMA, "format": "other"}))
    with pytest.raises(CannotWrite, match="holds an export to other"):
        export([tiled()], "triton", tmp_path / "out")


def test_an_export_is_renewed_whole(tmp_path):
    pytest.importorskip("triton")
    export([tiled()], "triton", tmp_path / "out")
    (tmp_path / "out" / "left-over").write_text("")
    export([tiled()], "triton", tmp_path / "out")
    assert not (tmp_path / "out" / "left-over").exists()


def test_a_log_of_several_generators_serves_each_of_them(tmp_path):
    """The fastest entry of a workload is left to those that can run it."""
    pytest.importorskip("tvm")
    axes = {"M": 256, "N": 128, "K": 64}
    fast = tuned.entry_on(tuned.H200, "matmul", "triton.matmul_tiled", axes=axes, seconds=1e-5)
    slow = tuned.entry_on(tuned.H200, "matmul", "tvm.untuned", axes=axes, seconds=2e-5)
    slower = tuned.entry_on(tuned.H200, "matmul", "tvm.untuned", axes=axes, seconds=3e-5)
    found = exporting.chosen([slower, slow, fast], find_exporter("tvm"))
    assert [w.entry for w in found.winners] == [slow]
    (refused,) = found.refused
    assert "triton.matmul_tiled is made by triton" in refused
    assert [w.entry for w in exporting.chosen([slow, fast], find_exporter("triton")).winners] == [fast]
