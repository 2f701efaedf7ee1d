"""Configuration files of vLLM and SGLang: read by the installed packages' own functions, from tuning their kernels."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autotune.exporters.base import ExportFault
from autotune.exporting import export, find_exporter
from autotune.importing import read_foreign
from autotune.recall import recall
from autotune.tuned_log import RunnerUp
from autotune.warm_start import warm_schedules
from search_spaces.errors import MissingDependency, NothingValid
from search_spaces.installed_text import function_of, source_file
from search_spaces.registry import load_file

tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
BLOCKS = {"vllm": "block_shape=[128,128]", "sglang": "block_shape=[128, 128]"}
TILE = {"block_m": 64, "block_n": 128, "block_k": 128, "num_warps": 4, "num_stages": 3, "group": 1}
ROW = {
    "BLOCK_SIZE_M": 64,
    "BLOCK_SIZE_N": 128,
    "BLOCK_SIZE_K": 128,
    "GROUP_SIZE_M": 1,
    "num_warps": 4,
    "num_stages": 3,
}


@pytest.fixture(params=BLOCKS)
def engine(request):
    missing = find_exporter(request.param).missing()
    if missing is not None:
        pytest.skip(missing)
    return request.param


def entry(engine, rows=64, **fields):
    """An entry that the engine's kernel won; `fields` of the schedule."""
    task = tuned.task_on(tuned.H200, "block_fp8_matmul", M=rows, N=2048, K=7168)
    return tuned.entry_for(task, tuned.H200, {"sketch": f"triton.block_fp8_matmul_{engine}", **TILE, **fields})


def test_the_engines_function_finds_each_number_of_rows(engine, tmp_path):
    entries = [entry(engine), entry(engine, 128, num_stages=4)]
    made = export(entries, engine, tmp_path / "out")
    name = f"configs/N=2048,K=7168,device_name=NVIDIA_H200,dtype=fp8_w8a8,{BLOCKS[engine]}.json"
    assert list(made.files) == [name]
    assert json.loads((tmp_path / "out" / name).read_text()) == {"64": ROW, "128": {**ROW, "num_stages": 4}}
    assert found(engine, entries[0], tmp_path / "out") == {64: ROW, 128: {**ROW, "num_stages": 4}}
    assert found(engine, tuned_elsewhere(entries[0]), tmp_path / "out") is None


def tuned_elsewhere(made):
    """An entry of another device."""
    return msgspec.structs.replace(made, device=replace(made.device, name="NVIDIA H100"))


def found(engine, made, folder):
    """What the engine's function finds for an entry, as plain data."""
    winner = recall(made)
    rows = find_exporter(engine).file_of(winner).looked_up(winner, folder)
    return None if rows is None else {count: dict(row) for count, row in rows.items()}


def test_where_another_kernel_won_the_fastest_of_the_engines_is_taken(engine, tmp_path):
    other = {"sketch": f"triton.block_fp8_matmul_{engine}", **TILE}
    task = tuned.task_on(tuned.H200, "block_fp8_matmul", M=64, N=2048, K=7168)
    ours = {"sketch": "triton.block_fp8_matmul_tiled", **TILE}
    won = tuned.entry_for(task, tuned.H200, ours, runners_up=(RunnerUp(other, 3e-5),))
    made = export([won], engine, tmp_path / "out")
    assert any("runner-up" in note for note in made.notes)
    with pytest.raises(NothingValid, match=f"--sketch triton.block_fp8_matmul_{engine}"):
        export([tuned.entry_for(task, tuned.H200, ours)], engine, tmp_path / "other")


def experts(engine, rows=64, width=2048, top=8, dtype="bfloat16", **fields):
    """An entry of a mixture of experts that the engine's kernel won."""
    shape = {"E": 128, "M": rows, "T": top, "N": 768, "K": width}
    task = tuned.task_on(tuned.H200, "fused_moe", dtype=dtype, **shape)
    return tuned.entry_for(task, tuned.H200, {"sketch": f"triton.fused_moe_{engine}", **TILE, **fields})


@pytest.mark.parametrize("of", [entry, experts])
def test_what_was_exported_comes_back_as_the_same_schedule(engine, of, tmp_path):
    made = export([of(engine)], engine, tmp_path / "out")
    (proposal,) = read_foreign(tmp_path / "out" / next(iter(made.files))).content.proposals
    task = recall(of(engine)).task
    warm, reasons = warm_schedules(task, [proposal], 8)
    assert reasons == []
    assert recall(of(engine)).schedule in warm


def test_the_engine_finds_what_its_experts_kernel_was_tuned_to(engine, tmp_path):
    entries = [experts(engine), experts(engine, 128, num_stages=4), entry(engine)]
    made = export(entries, engine, tmp_path / "out")
    triton = f"triton_{entries[0].environment.versions['triton'].replace('.', '_')}"
    place = {"vllm": "configs/fused_moe", "sglang": f"configs/{triton}"}[engine]
    name = f"{place}/E=128,N=768,device_name=NVIDIA_H200.json"
    assert sorted(made.files)[-1] == name
    assert len(made.files) == 2
    assert found(engine, entries[0], tmp_path / "out") == {64: ROW, 128: {**ROW, "num_stages": 4}}
    assert found(engine, tuned_elsewhere(entries[0]), tmp_path / "out") is None
    assert any("whatever K and T" in note for note in made.notes)


@pytest.mark.parametrize("other", [{"width": 4096}, {"top": 4}, {"dtype": "float16"}])
def test_two_models_that_a_name_cannot_tell_apart_are_not_in_one_file(engine, other, tmp_path):
    same = export([experts(engine), experts(engine, **other)], engine, tmp_path / "same")
    assert len(same.files) == 1
    with pytest.raises(ExportFault, match="are one to the engine, M=64"):
        export([experts(engine), experts(engine, **other, num_stages=4)], engine, tmp_path / "out")


def test_another_operator_has_no_file_there(engine, tmp_path):
    other = tuned.entry_on(tuned.H200, "softmax", "triton.softmax_rows", axes={"M": 64, "N": 128})
    with pytest.raises(NothingValid, match="block_fp8_matmul and fused_moe, not for softmax"):
        export([other], engine, tmp_path / "out")


@pytest.mark.parametrize("engine", BLOCKS)
def test_without_the_engine_one_line_says_how_to_get_it(engine, tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match=f"pip install --no-deps {engine}") as caught:
        export([], engine, tmp_path / "out")
    assert "\n" not in str(caught.value)
    for operator, shape in {"block_fp8_matmul": {"M": 64, "N": 256, "K": 256}, "fused_moe": {"M": 64}}.items():
        task = tuned.task_on(tuned.H200, operator, **shape)
        assert f"pip install --no-deps {engine}" in task.refusals[f"triton.{operator}_{engine}"]


def test_only_the_named_definitions_of_a_package_are_run(tmp_path, monkeypatch):
    package = tmp_path / "a_package_of_tests"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "some.py").write_text(
        "import nothing_like_it\n"
        "def one():\n    return 1\n"
        "def two():\n    return one() + offset\n"
        "raise RuntimeError('run')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert source_file(package.name, "some.py") == package / "some.py"
    assert function_of(package.name, "some.py", ("one", "two"), {"offset": 5})() == 6
    with pytest.raises(MissingDependency, match="has no three"):
        function_of(package.name, "some.py", ("three",), {})
    with pytest.raises(MissingDependency, match=r"has no other\.py"):
        function_of(package.name, "other.py", ("one",), {})
