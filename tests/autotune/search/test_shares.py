from collections import Counter

import pytest

from autotune.search.shares import Shares


def test_choices_are_dealt_by_weight():
    shares = Shares({"a": 0.6, "b": 0.3, "c": 0.1})
    assert Counter(shares.deal() for _ in range(100)) == {"a": 60, "b": 30, "c": 10}


@pytest.mark.parametrize("weight", [0.1, 0.01])
def test_no_share_rounds_to_nothing_when_one_is_dealt_at_a_time(weight):
    shares = Shares({"large": 1 - weight, "small": weight})
    dealt = [shares.deal() for _ in range(round(3 / weight))]
    assert dealt.count("small") == 3


def test_what_pays_gets_more_and_what_does_not_keeps_some():
    shares = Shares({"pays": 0.5, "does not": 0.5})
    for _ in range(40):
        shares.credit("pays", 1.0)
        shares.credit("does not", 0.0)
    assert 0.6 < shares()["pays"] < 0.75
    assert Counter(shares.deal() for _ in range(100))["does not"] >= 25


def test_success_long_ago_is_forgotten():
    shares = Shares({"a": 0.5, "b": 0.5})
    for _ in range(20):
        shares.credit("a", 1.0)
    for _ in range(400):
        shares.credit("a", 0.0)
        shares.credit("b", 0.0)
    assert shares()["a"] == pytest.approx(0.5, abs=0.02)


def test_a_weight_can_be_changed():
    shares = Shares({"a": 0.5, "b": 0.5})
    shares.reweigh("b", 1.5)
    assert shares()["b"] == pytest.approx(0.75)
