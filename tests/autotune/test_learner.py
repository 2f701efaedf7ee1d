import numpy as np
import pytest

from autotune.strategies.base import Result
from autotune.tuner import Learner
from cost_models.features import Features
from cost_models.models.hybrid import HybridModel
from cost_models.models.xgb import XgbModel
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

SPACE = ScheduleSpace(
    (SketchSpace("bowl", tuple(Knob(f"k{i}", Family.TILE_SIZES, (1, 2, 4, 8, 16, 32)) for i in range(3))),)
)


def seconds_of(schedule):
    return 1e-3 * (1 + sum((np.log2(v) - 2) ** 2 for _, v in schedule.items[1:]))


def drawn(count):
    return list(dict.fromkeys(SPACE.sample(np.random.default_rng(i)) for i in range(2 * count)))[:count]


@pytest.mark.parametrize("model", [XgbModel, HybridModel])
def test_a_schedule_measured_again_counts_with_its_latest_time_alone(model):
    schedules = drawn(40)
    right = [Result(s, seconds_of(s)) for s in schedules]
    wrong_first, straight = (Learner(model(Features(SPACE), 0)) for _ in range(2))
    wrong_first.tell([Result(s, 1.0 / r.seconds) for s, r in zip(schedules, right, strict=True)])
    wrong_first.score(schedules)
    wrong_first.tell(right)
    straight.tell(right)
    np.testing.assert_array_equal(wrong_first.score(schedules), straight.score(schedules))


def test_one_schedule_measured_again_is_news():
    schedules = drawn(20)
    learner = Learner(HybridModel(Features(SPACE), 0))
    learner.tell([Result(s, seconds_of(s)) for s in schedules])
    before = learner.score(schedules)
    learner.tell([Result(schedules[0], 1e-6)])
    assert learner.score(schedules)[0] < before[0]


def test_its_heads_choose():
    schedules = drawn(60)
    learner = Learner(HybridModel(Features(SPACE), 0))
    learner.tell([Result(s, seconds_of(s)) for s in schedules[:30]])
    for head in learner.heads:
        chosen = learner.choose(schedules[30:], 5, (), head)
        assert len(set(chosen)) == 5
        best = min(map(seconds_of, (schedules[30:][i] for i in chosen)))
        assert best <= np.quantile([seconds_of(s) for s in schedules[30:]], 0.1)


def test_what_is_pending_is_not_looked_beside():
    schedules = drawn(120)
    learner = Learner(HybridModel(Features(SPACE), 0))
    learner.tell([Result(s, seconds_of(s)) for s in schedules[:12]])
    rest = schedules[12:]
    first = learner.choose(rest, 1)[0]
    others = [s for i, s in enumerate(rest) if i != first]
    alone, beside = learner.choose(others, 10), learner.choose(others, 10, [rest[first]])
    assert alone != beside
    # Chosen together it is the same as one after the other.
    assert learner.choose(rest, 11)[1:] == [rest.index(others[i]) for i in beside]
