"""Inductor's own lookup finds the exported tiles, and no others."""

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.exporters.inductor import expressible, looked_up
from autotune.exporting import export
from autotune.recall import recall
from autotune.reuse.inductor import FILE, read_table, tuned_table
from autotune.tuned_log import RunnerUp
from search_spaces.errors import BadLog, NothingValid
from search_spaces.registry import load_file

torch = pytest.importorskip("torch")
pytest.importorskip("torch._inductor.lookup_table")
tuned = load_file(Path(__file__).parents[2] / "support" / "tuned.py")
SHAPE = {"M": 1024, "N": 512, "K": 264}


def tiled(order="rows", **fields):
    task = tuned.task_on(tuned.H200, "matmul", **SHAPE)
    schedule = {
        "sketch": "triton.matmul_tiled",
        "block_m": 128,
        "block_n": 64,
        "block_k": 32,
        "num_warps": 4,
        "num_stages": 3,
        "store_vector": 8,
        "order": order,
        "group": 4,
    }
    return tuned.entry_for(task, tuned.H200, schedule, **fields)


def test_its_lookup_gives_the_tuned_tile(tmp_path):
    export([tiled()], "inductor", tmp_path / "out")
    ((key, (choice,)),) = json.loads((tmp_path / "out" / FILE).read_text()).items()
    assert key == "NVIDIA H200+((torch.float16, [1024, 264], [264, 1]), (torch.float16, [264, 512], [512, 1]))+mm"
    tile = {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 4, "num_warps": 4, "num_stages": 3}
    assert choice.items() >= tile.items()
    assert choice["EVEN_K"] is False
    found = looked_up(recall(tiled()), read_table(tmp_path / "out" / FILE))
    assert found["triton::mm"][0].items() >= tile.items()


def test_another_device_shape_or_template_finds_nothing(tmp_path):
    export([tiled()], "inductor", tmp_path / "out")
    table = read_table(tmp_path / "out" / FILE)
    elsewhere = msgspec.structs.replace(tiled(), device=replace(tuned.H200, name="another"))
    assert looked_up(recall(elsewhere), table) == {}
    (choice,) = next(iter(table.values()))
    stale = {key: [{**choice, "template_hash": "0" * 64}] for key in table}
    assert looked_up(recall(tiled()), stale) == {}


def test_a_runner_up_serves_where_the_winner_is_of_another_structure(tmp_path):
    task = tuned.task_on(tuned.H200, "matmul", **SHAPE)
    runner = RunnerUp(tiled().schedule, 3e-5)
    winner = tuned.entry_for(
        task,
        tuned.H200,
        tuned.task_on(tuned.H200, "matmul", "triton.matmul_tma", **SHAPE).default,
        runners_up=(runner,),
    )
    made = export([winner], "inductor", tmp_path / "out")
    assert any("not the winner but a runner-up" in note for note in made.notes)
    assert str(expressible(recall(winner))).startswith("triton.matmul_tiled block_m=128")


def test_bands_of_columns_and_other_operators_are_refused(tmp_path):
    for entry, why in (
        (tiled(order="columns"), "bands of rows"),
        (tuned.entry_on(tuned.H200, "softmax", "triton.softmax_rows", axes={"M": 64, "N": 128}), "for matmul"),
    ):
        with pytest.raises(NothingValid, match=why):
            export([entry], "inductor", tmp_path / "out")


def test_the_table_is_there_inside_of_the_block_only(tmp_path):
    from torch._inductor import config
    from torch._inductor.lookup_table import LookupTableChoices
    from torch._inductor.virtualized import V

    export([tiled()], "inductor", tmp_path / "out")
    before = config.lookup_table.table
    with tuned_table(tmp_path / "out" / FILE):
        assert len(config.lookup_table.table) == 1
        assert isinstance(V.choices, LookupTableChoices)
    assert config.lookup_table.table == before
    assert not isinstance(V.choices, LookupTableChoices)


def test_torch_compile_works_under_it_where_it_has_nothing_to_say(tmp_path):
    export([tiled()], "inductor", tmp_path / "out")
    a, b = torch.randn(8, 16), torch.randn(16, 4)
    with tuned_table(tmp_path / "out" / FILE):
        made = torch.compile(torch.mm, backend="aot_eager")(a, b)
    torch.testing.assert_close(made, a @ b)


def told_or_read(path):
    """A line where it is refused."""
    try:
        read_table(path)
    except BadLog as error:
        return str(error)
    return ""


@settings(deadline=None)
@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_is_read_or_told(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "table.json"
    path.write_text(json.dumps(value))
    assert "\n" not in told_or_read(path)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_told(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "table.json"
    path.write_bytes(data)
    assert "\n" not in told_or_read(path)


def test_a_tower_of_brackets_is_told(tmp_path):
    (tmp_path / "deep.json").write_text('{"a":' + "[" * 200_000)
    assert "no lookup table" in told_or_read(tmp_path / "deep.json")
