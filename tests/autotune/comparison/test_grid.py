"""Searches in processes: what is done is kept, what died is told, nothing is done twice."""

import pytest

from autotune.comparison.grid import FILE, cells_of, finished, run_cells
from autotune.comparison.source import strategy_hash
from autotune.comparison.spaces import find_spaces
from autotune.journal import Journal
from search_spaces import registry
from search_spaces.errors import AutotuneError, BadLog, CannotWrite, MissingDependency, UnknownName
from tests.support.recorded import tune_recorded

DYING = """
import os
from autotune.strategies.random import RandomSearch

class Dying(RandomSearch):
    def ask(self, count):
        if len(self.told) >= 8:
            os._exit(9)
        return super().ask(count)
"""

INFORMED = """
from autotune.strategies.random import RandomSearch

class Mine(RandomSearch):
    uses_prior = True
"""


class Seen(list):
    def __call__(self, trace, done, total):
        self.append((trace.strategy, trace.space, trace.seed, done, total))


def cells(folder, strategies=("random",), seeds=(0, 1), **changes):
    options = {"trials": 24, "batch": 8, "prior": "none"} | changes
    return cells_of(strategies, find_spaces([str(folder)], folder), seeds, **options)


def test_every_cell_is_searched_once(folder, tmp_path):
    seen = Seen()
    wanted = cells(folder, ("random", "evolutionary"))
    traces = run_cells(wanted, tmp_path / "out", 2, seen)
    assert [(t.strategy, t.space, t.seed) for t in traces] == [(c.strategy, c.space.name, c.seed) for c in wanted]
    assert sorted(done for *_, done, _ in seen) == list(range(1, 9))
    assert {total for *_, total in seen} == {8}
    assert all(len(t.places) == 24 and not t.error for t in traces)


def test_what_a_folder_holds_is_not_searched_again(folder, tmp_path):
    out = tmp_path / "out"
    first = run_cells(cells(folder), out, 2, Seen())
    (out / FILE).write_bytes((out / FILE).read_bytes()[:-40])
    seen, wanted = Seen(), cells(folder, seeds=(0, 1, 2))
    second = run_cells(wanted, out, 2, seen)
    # The line torn off, and the two of the new seed.
    assert len(seen) == 3
    assert len(finished(out)) == 6
    kept = {(t.space, t.seed): t.places for t in second}
    assert all(kept[t.space, t.seed] == t.places for t in first)
    assert run_cells(wanted, out, 1, seen) == second
    assert len(seen) == 3


@pytest.mark.parametrize("change", [{"batch": 4}, {"trials": 16}, {"seeds": (5, 6)}])
def test_other_settings_are_other_cells(folder, change):
    assert not {c.key for c in cells(folder)} & {c.key for c in cells(folder, **change)}


def test_a_prior_makes_other_cells_of_those_who_use_one(folder, tmp_path):
    path, prior = tmp_path / "mine.py", tmp_path / "prior.zip"
    path.write_text(
        "from autotune.strategies.random import RandomSearch\nclass Mine(RandomSearch):\n    uses_prior = 1\n"
    )
    keys = []
    for content in (None, b"one", b"other"):
        if content:
            prior.write_bytes(content)
        choice = str(prior) if content else "none"
        keys.append([c.key for c in cells(folder, (f"{path}:Mine", "random"), prior=choice)])
    assert len({tuple(k[0::2]) for k in keys}) == 3
    assert len({tuple(k[1::2]) for k in keys}) == 1
    with pytest.raises(BadLog, match="no prior at"):
        cells(folder, (f"{path}:Mine",), prior=str(tmp_path / "gone.zip"))


def test_other_code_is_another_cell(folder, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(DYING)
    name = f"{path}:Dying"
    before = strategy_hash(name)
    assert strategy_hash(name) == before
    path.write_text(DYING.replace("8", "9"))
    assert strategy_hash(name) != before
    assert len({strategy_hash(n) for n in ("random", "evolutionary", "xgb")}) == 3


def test_other_data_are_another_cell(folder):
    before = {c.key for c in cells(folder)}
    (folder / "bowl__slow.csv.gz").write_bytes((folder / "bowl__fast.csv.gz").read_bytes())
    assert len(before & {c.key for c in cells(folder)}) == 2


def test_a_strategy_that_ends_its_process_takes_only_its_cell_along(folder, tmp_path):
    path = tmp_path / "dying.py"
    path.write_text(DYING)
    traces = run_cells(cells(folder, (f"{path}:Dying", "random")), tmp_path / "out", 2, Seen())
    assert {t.error for t in traces if t.strategy == "random"} == {""}
    assert {t.error for t in traces if t.strategy != "random"} == {"the process exited with code 9"}


@pytest.mark.skipif(registry.available("kernel_tuner"), reason="Kernel Tuner is here")
def test_a_rival_that_is_not_installed_names_its_extra(folder):
    with pytest.raises(MissingDependency, match=r"kernel-autotune\[rivals\]"):
        cells(folder, ("kernel-tuner:pso",))


def test_a_folder_that_takes_no_files_is_the_users_mistake(folder, tmp_path):
    (tmp_path / "out").write_text("a file")
    with pytest.raises(CannotWrite, match="choose another --out"):
        run_cells(cells(folder), tmp_path / "out", 1, Seen())


def test_spaces_are_found_by_folder_file_and_name(folder, tmp_path):
    def found(*places):
        return [s.name for s in find_spaces(places, folder)]

    assert found(str(folder)) == found("bowl") == ["bowl__fast", "bowl__slow"]
    assert found("bowl__slow") == found(str(folder / "bowl__slow.csv.gz")) == ["bowl__slow"]
    assert found("bowl__slow", "bowl") == ["bowl__slow", "bowl__fast"]
    with pytest.raises(UnknownName, match="did you mean 'bowl__slow'"):
        found("bowl__slaw")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadLog, match="holds no recording"):
        found(str(tmp_path / "empty"))


def test_two_spaces_of_one_name_are_the_users_mistake(folder, tmp_path):
    (tmp_path / "again").mkdir()
    twin = tmp_path / "again" / "bowl__slow.csv.gz"
    twin.write_bytes((folder / "bowl__slow.csv.gz").read_bytes())
    with pytest.raises(AutotuneError, match="both called bowl__slow"):
        find_spaces([str(folder), str(twin)], folder)


def test_a_run_is_another_space_when_it_went_on_and_the_same_when_it_was_compacted(tmp_path):
    def digest():
        (space,) = find_spaces([str(tmp_path / "run")], tmp_path)
        return space.digest

    tune_recorded(tmp_path / "run", 8, "random")
    first = digest()
    with Journal(tmp_path / "run") as journal:
        journal.compact()
    assert digest() == first
    tune_recorded(tmp_path / "run", 12, "random")
    with Journal(tmp_path / "run") as journal:
        journal.compact()
    assert digest() != first
