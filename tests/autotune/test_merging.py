"""Logs of several machines become one, and two logs are told apart."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from autotune.cli import cli
from autotune.merging import compare, write_shared
from autotune.tuned_log import best_entries, entries_of, read_tuned_log, write_entries
from search_spaces.errors import BadLog, CannotWrite
from search_spaces.registry import load_file

tuned = load_file(Path(__file__).parents[1] / "support" / "tuned.py")


def entry(seed=0, seconds=2e-5, device=tuned.H200, m=512, **fields):
    axes = {"M": m, "N": 256, "K": 128}
    return tuned.entry_on(device, "matmul", "triton.matmul_tiled", axes=axes, seed=seed, seconds=seconds, **fields)


OTHER = replace(tuned.H200, name="NVIDIA H100 PCIe")


def test_of_each_workload_and_device_the_best_is_kept():
    slow, fast, raced = entry(1, 3e-5), entry(2, 1e-5), entry(3, 2e-5, raced=True)
    elsewhere, larger = entry(4, 9e-5, OTHER), entry(5, 9e-5, m=1024)
    assert best_entries([slow, fast]) == (fast,)
    assert best_entries([slow, raced, fast, elsewhere, larger]) == (raced, elsewhere, larger)
    newer = entry(6, 1e-6, replace(tuned.H200, driver="580"), raced=True)
    assert best_entries([raced, newer]) == (newer,), "another driver makes no other device"


def test_merge_writes_one_log(tmp_path):
    write_entries(tmp_path / "a.json", [entry(1, 3e-5)])
    write_entries(tmp_path / "b.json", [entry(2, 1e-5), entry(3, device=OTHER)])
    arguments = ["merge", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--out", str(tmp_path / "c.json")]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.output.startswith("2 of 3 entries kept")
    assert [e.seconds for e in read_tuned_log(tmp_path / "c.json").entries] == [1e-5, 2e-5]


def test_many_write_to_one_folder_at_once(tmp_path):
    entries = [entry(seed, 1e-5 * (seed + 1), device) for seed in range(6) for device in (tuned.H200, OTHER)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda e: write_shared(tmp_path / "shared", [e]), entries * 2))
    assert len(list((tmp_path / "shared").iterdir())) == 2
    found = entries_of(tmp_path / "shared")
    assert sorted(map(repr, found)) == sorted(map(repr, entries))
    assert [e.seconds for e in best_entries(found)] == pytest.approx([1e-5, 1e-5])
    assert not list((tmp_path / "shared").rglob("*.partial"))


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWrite):
        write_shared(tmp_path / "file" / "folder", [entry()])


def test_what_changed_is_told_with_why_it_may_have():
    before, after = entry(1, 2e-5), entry(2, 1e-5, replace(tuned.H200, driver="580"))
    (change,) = compare([before, entry(3, m=1024)], [after, entry(3, m=1024)])
    assert change.times_faster == pytest.approx(2.0)
    assert [(d.field, d.recorded, d.here) for d in change.differences] == [("device driver", "575.0", "580")]
    gone, new = compare([before], [entry(1, device=OTHER)])
    assert (gone.after, new.before) == (None, None)
    assert gone.times_faster is None
    assert compare([before], [before]) == []


def test_diff_prints_and_gives_json(tmp_path):
    write_entries(tmp_path / "a.json", [entry(1, 2e-5), entry(4, m=1024)])
    write_entries(tmp_path / "b.json", [entry(2, 1e-5), entry(4, device=OTHER)])
    arguments = ["diff", str(tmp_path / "a.json"), str(tmp_path / "b.json")]
    shown = CliRunner().invoke(cli, arguments, catch_exceptions=False).output
    for said in ("other schedule, 2x  matmul M=512", "gone  matmul M=1024", "new  matmul M=512"):
        assert said in shown
    rows = json.loads(CliRunner().invoke(cli, [*arguments, "--json"], catch_exceptions=False).output)
    assert [row["times_faster"] for row in rows] == [pytest.approx(2.0), None, None]
    same = CliRunner().invoke(cli, [*arguments[:2], arguments[1]], catch_exceptions=False)
    assert same.output == "no difference\n"


def test_a_damaged_file_in_a_shared_folder_is_named(tmp_path):
    (path,) = write_shared(tmp_path, [entry()])
    path.write_text("{")
    with pytest.raises(BadLog, match=path.name):
        entries_of(tmp_path)
