"""What every cost model must keep."""

import math
from functools import partial

import numpy as np
import pytest

from cost_models.features import Features
from cost_models.model import CostModel
from cost_models.ranking import pair_accuracy, top_recall
from search_spaces import registry
from search_spaces.space import Family, Knob, ScheduleSpace, SketchSpace

PACKAGE = "cost_models.models"
# The control must not beat itself.
CONTROL = "random"
LEARNING = pytest.mark.parametrize("name", [n for n in registry.names(PACKAGE) if n != CONTROL])


@pytest.fixture(params=registry.names(PACKAGE))
def name(request):
    return request.param


@pytest.fixture
def model(name):
    return registry.find(PACKAGE, name, "model")


@pytest.fixture
def space():
    tiles = tuple((2**i, 2**j, 2 ** (6 - i - j)) for i in range(7) for j in range(7 - i))
    warps = Knob("warps", Family.WARPS, (1, 2, 4, 8, 16))
    tiled = (Knob("tile", Family.TILE_SIZES, tiles), warps, Knob("order", Family.LOOP_ORDER, ("row", "column")))
    return ScheduleSpace(
        (SketchSpace("tiled", tiled), SketchSpace("plain", (warps, Knob("split", Family.PARALLELISM, (1, 2, 3)))))
    )


def seconds_of(schedule):
    """Fails where a tile is too large, else best at 8 warps and tiles of 8x8."""
    base = 1 + 0.3 * (math.log2(schedule.integer("warps")) - 3) ** 2
    if schedule.sketch == "plain":
        return 3 * base + schedule.integer("split")
    _, middle, inner = schedule["tile"]
    if middle * inner > 32:
        return math.inf
    return base + 0.5 * abs(math.log2(inner) - 3) + 0.2 * (schedule["order"] == "row")


def drawn(space, count, seed):
    rng = np.random.default_rng(seed)
    schedules = [space.sample(rng) for _ in range(count)]
    return schedules, np.array([seconds_of(s) for s in schedules])


def test_it_is_a_cost_model(model):
    assert issubclass(model, CostModel)
    assert model.__doc__


def test_it_predicts_before_it_has_learnt(model, space):
    schedules, _ = drawn(space, 10, 0)
    fresh = model(Features(space), 0)
    assert fresh.predict(schedules).shape == (10,)
    if not fresh.ready:
        assert not fresh.predict(schedules).any()


def test_it_becomes_ready(model, space):
    fitted = model(Features(space), 0)
    fitted.fit(*drawn(space, 64, 0))
    assert fitted.ready
    assert fitted.predict([]).shape == (0,)


def test_predictions_follow_the_order_of_the_schedules(model, space):
    fitted = model(Features(space), 0)
    fitted.fit(*drawn(space, 64, 0))
    schedules, _ = drawn(space, 40, 1)
    order = np.random.default_rng(2).permutation(40)
    # Up to the rounding of matrix products, which depends on how many rows they have.
    same = partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-9)
    same(fitted.predict([schedules[i] for i in order]), fitted.predict(schedules)[order])
    same(fitted.predict(schedules[:7]), fitted.predict(schedules)[:7])


def test_it_is_determined_by_its_seed(model, space):
    schedules, _ = drawn(space, 40, 1)
    predicted = []
    for seed in (5, 5):
        fitted = model(Features(space), seed)
        fitted.fit(*drawn(space, 64, 0))
        predicted.append(fitted.predict(schedules))
    np.testing.assert_array_equal(*predicted)


@LEARNING
def test_it_beats_the_control(name, space):
    model = registry.find(PACKAGE, name, "model")
    schedules, seconds = drawn(space, 200, 1)
    control = registry.find(PACKAGE, CONTROL, "model")(Features(space), 0)
    fitted = model(Features(space), 0)
    fitted.fit(*drawn(space, 64, 0))
    believed, chance = fitted.predict(schedules), control.predict(schedules)
    assert pair_accuracy(believed, seconds) > pair_accuracy(chance, seconds) + 0.1
    # A model may care for the fast end alone, but there it must be good.
    assert top_recall(believed, seconds, 20) > top_recall(chance, seconds, 20) + 0.3


def test_expected_times_are_seconds_or_unknown(model, space):
    schedules, seconds = drawn(space, 200, 1)
    fitted = model(Features(space), 0)
    assert np.isnan(fitted.expected_seconds(schedules)).all()
    fitted.fit(*drawn(space, 64, 0))
    expected = fitted.expected_seconds(schedules)
    assert expected.shape == (200,)
    told = np.isfinite(expected) & np.isfinite(seconds)
    assert np.isnan(expected[~np.isfinite(expected)]).all()
    if told.any():
        assert told.sum() > 0.9 * np.isfinite(seconds).sum()
        assert np.median(np.abs(np.log(expected[told] / seconds[told]))) < math.log(1.15)


@pytest.mark.parametrize("count", [1, 15, 16, 40])
def test_it_survives_that_everything_failed(model, space, count):
    schedules, seconds = drawn(space, count, 0)
    fitted = model(Features(space), 0)
    fitted.fit(schedules, np.full_like(seconds, math.inf))
    assert np.isfinite(fitted.predict(schedules)).all()


def test_it_survives_that_all_are_alike(model, space):
    schedules, seconds = drawn(space, 40, 0)
    fitted = model(Features(space), 0)
    fitted.fit(schedules, np.full_like(seconds, 1e-3))
    assert np.isfinite(fitted.predict(schedules)).all()


@LEARNING
def test_failures_are_believed_slow(name, space):
    model = registry.find(PACKAGE, name, "model")
    schedules, seconds = drawn(space, 120, 0)
    fitted = model(Features(space), 0)
    fitted.fit(schedules, seconds)
    predicted = fitted.predict(schedules)
    failed = ~np.isfinite(seconds)
    fast = seconds <= np.quantile(seconds[~failed], 0.25)
    assert predicted[failed].min() > predicted[fast].mean()


def test_refitting_forgets_what_is_not_given_again(name, model, space):
    schedules, seconds = drawn(space, 64, 0)
    once, twice = model(Features(space), 0), model(Features(space), 0)
    twice.fit(schedules, seconds[::-1].copy())
    for each in (once, twice):
        each.fit(schedules, seconds)
    np.testing.assert_array_equal(once.predict(schedules), twice.predict(schedules))
