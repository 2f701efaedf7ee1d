import math

import numpy as np
import pytest

from cost_models.ranking import pair_accuracy, regret, top_recall

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
