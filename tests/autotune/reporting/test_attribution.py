"""A cost model of a journal, taken apart."""

import numpy as np
import pytest

from autotune.reporting.attribution import LEAST, attribute
from search_spaces.space import Schedule


def schedules(count, seed=0):
    rng = np.random.default_rng(seed)
    made = {}
    while len(made) < count:
        a, b, c = (int(2 ** rng.integers(0, 6)) for _ in range(3))
        one = Schedule((("sketch", "made"), ("a", a), ("b", b), ("c", c), ("tile", (a, b))))
        made[one] = 1e-3 * (1 + np.log2(a)) * (1 + 0.1 * np.log2(b))
    return made


def test_the_knob_that_moves_the_time_most_comes_first_and_the_idle_one_hardly_counts():
    made = schedules(200)
    plain = {Schedule(s.items[:-1]): t for s, t in made.items()}
    found = attribute(plain, min(plain, key=plain.get))
    assert list(found.percent) == ["a", "b", "c"]
    assert found.percent["a"] > 3 * found.percent["b"] > 3 * found.percent["c"]
    assert found.winner["a"] < -20


def test_contributions_add_up_to_the_prediction_for_the_winner():
    plain = {Schedule(s.items[:-1]): t for s, t in schedules(200).items()}
    winner = min(plain, key=plain.get)
    found = attribute(plain, winner)
    factor = np.prod([1 + p / 100 for p in found.winner.values()])
    assert factor == pytest.approx(plain[winner] / np.exp(np.mean(np.log(list(plain.values())))), rel=0.15)


def test_the_columns_of_a_tuple_are_one_knob():
    found = attribute(schedules(100), None)
    assert set(found.percent) == {"a", "b", "c", "tile"}
    assert found.winner == {}


def test_predictions_are_of_trials_that_the_model_had_not_seen():
    made = schedules(150)
    noise = np.random.default_rng(1).permutation(list(made.values()))
    assert attribute(made, None).rank_correlation > 0.9
    assert abs(attribute(dict(zip(made, map(float, noise), strict=True)), None).rank_correlation) < 0.4


def test_too_few_trials_or_none_that_differ_give_no_model():
    assert attribute(schedules(LEAST - 1), None) is None
    assert attribute(dict.fromkeys(schedules(LEAST), 1.0), None) is None
