"""The optuna strategy: limits, and an absent package."""

import sys

import numpy as np
import pytest

from autotune.strategies.base import Result
from autotune.strategies.tpe import WARM_UP, TreeParzenSearch
from search_spaces.errors import MissingDependency
from search_spaces.space import Constraint, Family, Knob, ScheduleSpace, SketchSpace

SPACE = ScheduleSpace(
    (
        SketchSpace(
            "narrow",
            (
                Knob("a", Family.TILE_SIZES, (8, 2, 4, 1, 16, 32)),
                Knob("b", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32)),
                Knob("order", Family.LOOP_ORDER, ("row", "column")),
            ),
            (Constraint("too large", ("a", "b"), lambda a, b: a * b <= 64),),
        ),
    )
)


def test_a_missing_package_is_named_with_its_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingDependency, match="kernel-autotune\\[optuna\\]"):
        TreeParzenSearch(SPACE, np.random.default_rng(0))


def test_what_is_suggested_beyond_a_limit_gives_way_to_something_legal():
    pytest.importorskip("optuna")
    strategy = TreeParzenSearch(SPACE, np.random.default_rng(0))
    for _ in range(6):
        asked = strategy.ask(6)
        assert [SPACE.why_not(s) for s in asked] == [None] * 6
        # The larger the faster, so that suggestions press against the limit.
        strategy.tell([Result(s, 1.0 / (s.integer("a") + s.integer("b"))) for s in asked])
    assert len(strategy.seen) > WARM_UP
    assert not strategy._studies["narrow"]._expected
