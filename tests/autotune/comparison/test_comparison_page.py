"""The page of a comparison: whole, in one file, and readable at any width."""

import re

import numpy as np
import pytest

from autotune.comparison.curves import alike, fractions, quantiles
from autotune.comparison.grid import cells_of, run_cells
from autotune.comparison.page import comparison_page
from autotune.comparison.result import compare
from autotune.comparison.spaces import find_spaces
from tests.support.pages import CHROMIUM, NO_CHROMIUM, misfits, parsed


@pytest.fixture
def searched(folder, tmp_path):
    def run(*strategies, trials=24):
        spaces = find_spaces([str(folder)], folder)
        cells = cells_of(strategies, spaces, range(3), trials=trials, batch=4, prior="none")
        return compare(cells, run_cells(cells, tmp_path / "out", 1, lambda *_: None), (8, trials))

    return run


def test_scores_curves_ranks_tests_and_every_space_are_there(searched):
    found = searched("random", "evolutionary", "annealing")
    text = comparison_page(found)
    document = parsed(text)
    figures = {f.get("id"): f for f in document.all("figure")}
    assert list(figures) == ["scores", "curves", "ranks", "pairs", "space-0", "space-1"]
    assert len(text.encode()) < 200_000
    assert not re.search(r"https?:|@import|url\(|<script", text)
    shown = figures["scores"].text
    for name in found.strategies:
        assert f"{found.summary[name]['score_24'].value:.3f}" in shown
    assert f"critical difference {found.ranks.critical:.2f}" in figures["ranks"].text
    assert {"bowl__slow", "bowl__fast"} == {figures[f"space-{i}"].all("h3")[0].text for i in range(2)}
    assert len(figures["curves"].all("svg")) == 2 + 4, "two widths, and a key for each strategy and the baseline"
    names = re.findall(r'\bid="([^"]+)"', text)
    assert len(names) == len(set(names))


def test_one_strategy_has_no_ranks_and_no_tests(searched):
    document = parsed(comparison_page(searched("random")))
    assert [f.get("id") for f in document.all("figure")] == ["scores", "curves", "space-0", "space-1"]


def test_a_search_that_failed_is_named(searched, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("from autotune.strategies.random import RandomSearch\nclass Mine(RandomSearch):\n    ask = None\n")
    document = parsed(comparison_page(searched("random", f"{path}:Mine")))
    assert "Searches that failed" in document.text
    assert "TypeError" in document.text


def test_bands_hold_the_middle_half_of_the_runs(searched):
    for spaces in fractions(searched("random")).values():
        middle, low, high = quantiles(list(spaces.values()))
        assert (low <= middle).all()
        assert (middle <= high).all()
        assert middle.shape == (24,)
        assert (low > 0).all()
        assert (high <= 1.0).all()


def test_quantiles_are_means_over_spaces_of_those_of_the_runs():
    one, other = np.array([[0.2], [0.4], [0.6]]), np.array([[0.8], [0.8], [0.8]])
    middle, low, high = quantiles([one, other])
    assert [float(v[0]) for v in (middle, low, high)] == pytest.approx([0.6, 0.55, 0.65])


@pytest.mark.parametrize(
    ("ranks", "groups"),
    [([1.0, 1.5, 3.0], [(0, 1)]), ([1.0, 2.0, 3.0], [(0, 1), (1, 2)]), ([1.0, 3.0], []), ([1.0, 1.2, 1.4], [(0, 2)])],
)
def test_groups_of_strategies_that_are_not_told_apart(ranks, groups):
    assert alike(ranks, 1.0) == groups


@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
@pytest.mark.parametrize("width", [375, 1400])
def test_in_a_browser_nothing_is_cut_or_too_small(searched, tmp_path, width):
    text = comparison_page(searched("random", "evolutionary", "annealing"))
    assert misfits(text, width, tmp_path) == f"fits {width}"
