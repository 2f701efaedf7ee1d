"""The portfolio: one memory, and asks that follow what paid."""

import numpy as np

from autotune.strategies.base import Result
from autotune.strategies.portfolio import MEMBERS, WARM_UP, Portfolio
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

SPACE = ScheduleSpace(
    (SketchSpace("only", tuple(Knob(f"k{i}", Family.TILE_SIZES, tuple(range(12))) for i in range(5))),)
)


def warm():
    portfolio = Portfolio(SPACE, np.random.default_rng(0))
    first = portfolio.ask(WARM_UP)
    portfolio.tell([Result(s, 1.0) for s in first])
    return portfolio


def test_members_share_what_is_known():
    portfolio = warm()
    asked = [s for _ in range(6) for s in portfolio.ask(8)]
    assert len(set(asked)) == 48
    assert all(member.told == portfolio.told and member.seen is portfolio.seen for member in portfolio._members)


def test_the_member_whose_proposals_are_fast_is_asked_most_and_none_is_forgotten():
    portfolio = warm()
    times = np.random.default_rng(1)
    for _ in range(30):
        asked = portfolio.ask(8)
        scale = {s: 0.5 if portfolio._proposer.get(s) == 2 else 1.0 for s in asked}
        portfolio.tell([Result(s, scale[s] * times.uniform(1.0, 2.0)) for s in asked])
    shares = portfolio._shares()
    assert shares[2] > 0.5
    assert shares.min() > 0.01
    assert len(shares) == len(MEMBERS)


def test_nothing_is_kept_of_who_proposed_what_was_told():
    portfolio = warm()
    for _ in range(5):
        portfolio.tell([Result(s, 1.0) for s in portfolio.ask(8)])
    assert not portfolio._proposer
