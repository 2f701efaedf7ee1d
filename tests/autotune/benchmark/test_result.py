"""How results stand to a mark, what follows from samples, and how a folder is continued."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.benchmark.result import Asked, CaseResult, Results, Rival, standings
from autotune.benchmark.suite import Case, Mark
from autotune.race import ratio
from search_spaces.operator import Workload

MARK = Mark(least=1.0, geometric_mean=1.1, copy_share=0.9, copy_from_mib=1.0)
CASE = Case("rows", "softmax", "M=4,N=4", "float16", MARK)
ASKED = Asked(CASE, "cuda -arch=sm_90", "a GPU", 60.0, 100, "hybrid", 0, True, ("torch_eager",), ())


def result(over=None, moved=2.0**21, copy=1.0, failed="", asked=ASKED):
    """A result `over` times faster than its library, and as fast as `copy` times a copy."""
    if failed:
        return CaseResult(asked, "2026-01-01", failed=failed)
    tuned = (1e-5,) * 20
    slow = tuple(t * over for t in tuned) if over else ()
    rivals = {"library": Rival(slow, 0.1, ratio(slow, tuned, 0.95))} if over else {}
    return CaseResult(
        asked,
        "2026-01-01",
        workload=Workload("softmax", (("M", 4), ("N", 4)), "float16"),
        samples=tuned,
        rivals=rivals,
        operations=10.0,
        bytes=moved,
        floor_seconds=5e-6,
        peak=1e12,
        copy_samples=(1e-5 * copy,) * 20,
        copied=moved,
    )


def of(found):
    return [(s.reached, s.met, s.without) for s in found]


def test_a_mark_is_met_only_where_every_part_is_reached():
    found = standings(MARK, [result(1.0, copy=0.95), result(1.44, copy=0.92)])
    assert [s.met for s in found] == [True, True, True]
    assert [s.reached for s in found] == pytest.approx([1.0, 1.2, 0.92])
    assert [s.met for s in standings(MARK, [result(0.99, copy=0.89), result(1.2)])] == [False, False, False]


def test_a_workload_without_a_figure_leaves_no_mark_met():
    found = standings(MARK, [result(2.0), result(failed="it broke")])
    assert [(s.met, s.without) for s in found] == [(False, 1)] * 3
    least, mean, copy = standings(MARK, [result(2.0), result(None)])
    assert not least.met
    assert not mean.met
    assert copy.met


def test_nothing_is_reached_by_nothing():
    assert all(s.reached is None and not s.met for s in standings(MARK, []))
    assert standings(Mark(), [result(2.0)]) == []


def test_small_workloads_are_not_held_against_a_copy():
    assert result(2.0, moved=2.0**19).copy_share is None
    assert result(2.0, moved=2.0**20).copy_share == pytest.approx(1.0)


def test_the_figures_follow_from_the_samples():
    found = result(2.0)
    assert found.sol == pytest.approx(0.5)
    assert found.mfu == pytest.approx(10.0 / 1e-5 / 1e12)
    assert found.bandwidth == pytest.approx(2.0**21 / 1e-5)
    assert msgspec.structs.replace(found, peak=None).mfu is None
    assert found.same_copy_share is None
    assert msgspec.structs.replace(found, same_copy_samples=(8e-6,) * 3).same_copy_share == pytest.approx(0.8)


@given(st.lists(st.floats(0.2, 5.0), min_size=1, max_size=6))
def test_the_geometric_mean_lies_between_least_and_largest(ratios):
    least, mean, _ = standings(MARK, [result(r) for r in ratios])
    assert least.reached == pytest.approx(min(ratios))
    assert min(ratios) * 0.999 <= mean.reached <= max(ratios) * 1.001
    assert math.isclose(mean.reached, math.prod(ratios) ** (1 / len(ratios)), rel_tol=1e-6)


def test_a_result_is_found_again_under_its_own_terms_only(tmp_path):
    kept = Results(tmp_path)
    assert kept.known(ASKED) is None
    kept.keep(result(1.5))
    assert kept.known(ASKED) == result(1.5)
    assert kept.known(msgspec.structs.replace(ASKED, seconds=61.0)) is None
    assert kept.known(msgspec.structs.replace(ASKED, device="another GPU")) is None
    kept.keep(result(failed="it broke"))
    assert kept.known(ASKED) is None
    kept.path(CASE).write_text("{")
    assert kept.known(ASKED) is None
