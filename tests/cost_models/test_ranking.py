import math

import numpy as np
import pytest

from cost_models.features import Features
from cost_models.models.random import RandomModel
from cost_models.models.xgb import XgbModel
from cost_models.ranking import held_out, pair_accuracy, regret, top_recall
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

SECONDS = np.array([4.0, 1.0, 3.0, 2.0, math.inf, math.inf])
PERFECT = np.array([4.0, 1.0, 3.0, 2.0, 9.0, 8.0])


def test_a_perfect_order_scores_best():
    assert top_recall(PERFECT, SECONDS, 2) == 1
    assert pair_accuracy(PERFECT, SECONDS) == 1
    assert regret(PERFECT, SECONDS, 1) == 0


def test_a_reversed_order_scores_worst():
    assert top_recall(-PERFECT, SECONDS, 2) == 0
    assert pair_accuracy(-PERFECT, SECONDS) == 0
    assert regret(-PERFECT, SECONDS, 2) == math.inf
    assert regret(-PERFECT, SECONDS, 3) == pytest.approx(3.0)


def test_no_opinion_is_chance():
    assert pair_accuracy(np.zeros(6), SECONDS) == 0.5
    assert pair_accuracy(PERFECT, np.ones(6)) == 0.5


def test_counts_beyond_what_there_is():
    assert top_recall(PERFECT, SECONDS, 100) == 1
    assert regret(-PERFECT, SECONDS, 100) == 0


SPACE = ScheduleSpace(
    (SketchSpace("bowl", tuple(Knob(f"k{i}", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32)) for i in range(3))),)
)


def test_a_model_is_judged_on_what_it_has_not_seen():
    rng = np.random.default_rng(0)
    schedules = list(dict.fromkeys(SPACE.sample(rng) for _ in range(140)))
    seconds = np.array([1 + sum((np.log2(v) - 2) ** 2 for _, v in s.items[1:]) for s in schedules])
    learnt, chance = (held_out(lambda m=m: m(Features(SPACE), 0), schedules, seconds) for m in (XgbModel, RandomModel))
    assert learnt.pair_accuracy > 0.75
    assert 0.4 < chance.pair_accuracy < 0.6
    assert learnt.top_recall > chance.top_recall
    assert 0 <= learnt.regret < 0.2


def test_too_few_measurements_judge_nothing():
    schedules = [SPACE.sample(np.random.default_rng(i)) for i in range(31)]
    assert held_out(lambda: XgbModel(Features(SPACE), 0), schedules, np.ones(31)) is None
    failed = np.full(40, math.inf)
    assert held_out(lambda: XgbModel(Features(SPACE), 0), [schedules[0]] * 40, failed) is None
