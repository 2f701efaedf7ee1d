"""What is learnt of tasks, kept in a file and bound to another task."""

import math
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.measurement import Status
from autotune.prior.experience import FLOOR, SketchTable, experience_of
from autotune.prior.kinship import expected_errors, measured_errors, vendor
from autotune.prior.prior import Prior
from autotune.prior.source import matches
from autotune.recordings.recording import Recording
from autotune.strategies.base import Aids, Result
from autotune.strategies.hybrid import FAIR_TRIES, LEAD, HybridSearch
from search_spaces.errors import BadLog
from search_spaces.listed import ListedSpace
from search_spaces.schedule import SKETCH, Schedule
from search_spaces.space import Constraint, Family, Knob, ScheduleSpace, SketchSpace

TILES, STAGES, ORDERS = (1, 2, 4, 8, 16, 32, 64), (1, 2, 3, 4), ("row", "column", "grouped")


def schedules(sketch="tiled"):
    return [
        Schedule(((SKETCH, sketch), ("tile", t), ("stages", s), ("order", o)))
        for t in TILES
        for s in STAGES
        for o in ORDERS
    ]


def seconds_of(schedule, best):
    away = abs(math.log2(schedule["tile"]) - best) + 0.3 * abs(schedule["stages"] - 3)
    return 1e-3 * 2.0 ** (0.5 * away + 0.2 * ORDERS.index(schedule["order"]))


def recording(name="k__a", best=4.0, device="NVIDIA A", sketch="tiled", listed=None, context=None):
    listed = listed or schedules(sketch)
    seconds = np.array([seconds_of(s, best) if s["tile"] * s["stages"] < 200 else np.inf for s in listed])
    return Recording(
        name=name,
        kernel=name.partition("__")[0],
        device=device,
        space=ListedSpace.of(listed),
        seconds=seconds,
        deviation=np.zeros(len(listed)),
        cost=np.ones(len(listed)),
        status=tuple(Status.OK if math.isfinite(t) else Status.LAUNCH_ERROR for t in seconds),
        context=context or {"axis M": best},
        provenance={"licence": "MIT", "citation": "someone", "policy": "private"},
    )


@pytest.fixture(scope="module")
def prior():
    far = recording("k__c", best=1.0, device="AMD C")
    return Prior.train([recording("k__a"), recording("k__b", best=4.2, device="NVIDIA B"), far], about={"who": "test"})


def test_a_file_gives_back_what_was_learnt(prior, tmp_path):
    prior.save(tmp_path / "p")
    read = Prior.load(tmp_path / "p")
    assert [e.name for e in read.experiences] == ["k__a", "k__b", "k__c"]
    assert read.about == {"who": "test"}
    assert np.allclose(read.errors, prior.errors, equal_nan=True)
    for one, other in zip(read.experiences, prior.experiences, strict=True):
        assert one.context == other.context
        assert one.credit == {"licence": "MIT", "citation": "someone"}
        for mine, theirs in zip(one.tables, other.tables, strict=True):
            assert (mine.sketch, mine.knobs, mine.values) == (theirs.sketch, theirs.knobs, theirs.values)
            assert np.array_equal(mine.picks, theirs.picks)
            assert np.array_equal(mine.slowdown, theirs.slowdown)
    space, context = prior_space(), {"axis M": 4.0}
    probes = schedules()[:9]
    assert np.allclose(
        read.policy.log_prob(space, context, probes), prior.policy.log_prob(space, context, probes), atol=1e-4
    )


def prior_space():
    return ListedSpace.of(schedules())


def test_equal_content_gives_equal_bytes(prior, tmp_path):
    for name in ("one", "other"):
        prior.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_file_is_told_in_one_line(prior, tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "p"
    prior.save(path)
    whole = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        whole = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    said = ""
    try:
        assert len(Prior.load(path).experiences) == 3
    except BadLog as error:
        said = str(error)
    assert "\n" not in said


def test_files_of_others_are_refused(prior, tmp_path):
    path = tmp_path / "p"
    with pytest.raises(BadLog, match="no prior"):
        Prior.load(path)
    prior.save(path)
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    for name, content, said in (
        ("prior.json", b'{"schema": "prior/9"}', "prior/9"),
        ("prior.json", b"[]", "no prior"),
        ("0/0/picks.npy", parts["0/0/slowdown.npy"], "no prior"),
        ("0/0/slowdown.npy", b"\x93NUMPY junk", "no prior"),
        ("errors.npy", parts["0/0/picks.npy"], "no prior"),
    ):
        with zipfile.ZipFile(path, "w") as file:
            for part, data in {**parts, name: content}.items():
                file.writestr(part, data)
        with pytest.raises(BadLog, match=said):
            Prior.load(path)


def test_a_large_recording_keeps_its_fastest():
    whole = experience_of(recording(), np.random.default_rng(0))
    part = experience_of(recording(), np.random.default_rng(0), most=20)
    assert (whole.size, part.size) == (84, 20)
    fastest = np.sort(whole.tables[0].slowdown)[:10]
    assert set(fastest) <= set(part.tables[0].slowdown)


def test_a_table_is_valid_by_construction():
    good = experience_of(recording(), np.random.default_rng(0)).tables[0]
    for wrong in (
        {"picks": good.picks + np.uint16(50)},
        {"slowdown": good.slowdown[:-1]},
        {"slowdown": np.full(len(good.slowdown), np.nan)},
        {"values": good.values[:-1]},
    ):
        with pytest.raises(ValueError, match="tiled"):
            replace(good, **wrong)
    assert isinstance(good, SketchTable)


def test_unknown_kinds_of_tasks_get_nothing(prior):
    knob = Knob("unlike", Family.WARPS, (1, 2))
    assert prior.for_task(ScheduleSpace((SketchSpace("other", (knob,)),)), {}) is None
    assert prior.only(lambda e: False).for_task(prior_space(), {}) is None


def test_sketches_are_matched_by_name_or_by_knobs(prior):
    experience = prior.experiences[0]
    renamed = ListedSpace.of(schedules("renamed"))
    assert set(matches(renamed, experience)) == {"renamed"}
    fewer = [Schedule(((SKETCH, "tiled"), ("tile", t), ("stages", s))) for t in TILES for s in STAGES]
    assert set(matches(ListedSpace.of(fewer), experience)) == {"tiled"}
    one = [Schedule(((SKETCH, "tiled"), ("tile", t))) for t in TILES]
    assert matches(ListedSpace.of(one), experience) == {}


def test_the_first_are_fast_where_tasks_are_alike(prior):
    target = recording("k__new", best=4.1, device="NVIDIA D")
    bound = prior.for_task(target.space, {"axis M": 4.1}, target.device)
    first = bound.first(4)
    assert first == bound.first(4)
    assert len(set(first)) == 4
    assert target.optimum / target.true_seconds(first).min() > 0.9


def test_a_knob_that_only_others_have_counts_by_its_best_value(prior):
    listed = [Schedule(((SKETCH, "tiled"), ("tile", t), ("stages", s))) for t in TILES for s in STAGES]
    bound = prior.for_task(ListedSpace.of(listed), {"axis M": 4.0}, "NVIDIA D")
    assert bound.first(1)[0]["tile"] in (8, 16, 32)


def test_values_never_recorded_are_predicted(prior):
    listed = [
        Schedule(((SKETCH, "tiled"), ("tile", t), ("stages", s), ("order", o), ("extra", e)))
        for t in (3, 12, 24, 48)
        for s in STAGES
        for o in (*ORDERS, "unheard of")
        for e in (False, True)
    ]
    bound = prior.for_task(ListedSpace.of(listed), {"axis M": 4.0}, "NVIDIA D")
    assert bound.first(1)[0]["tile"] in (12, 24)


def test_a_task_that_misleads_loses_its_say(prior):
    """Told of a task unlike the two it resembles by its numbers, it turns to the third."""
    target = recording("k__new", best=1.0, device="NVIDIA D", context={"axis M": 4.0})
    bound = prior.for_task(target.space, target.context, target.device)
    seen = set()
    for _ in range(6):
        asked = bound.propose(np.random.default_rng(0), 4, seen)
        assert not seen & set(asked)
        seen |= set(asked)
        bound.tell([Result(s, float(target.true_seconds([s])[0])) for s in asked])
    assert target.optimum / target.true_seconds(list(seen)).min() > 0.95


def test_what_is_under_way_is_not_proposed_again(prior):
    bound = prior.for_task(prior_space(), {"axis M": 4.0})
    rng = np.random.default_rng(0)
    one = bound.propose(rng, 5, set())
    other = bound.propose(rng, 5, set(one))
    assert not set(one) & set(other)
    everything = bound.propose(rng, 1000, set(one))
    assert len(everything) == len(schedules()) - 5


def test_results_may_come_in_any_order_twice_and_from_anywhere(prior):
    bound = prior.for_task(prior_space(), {"axis M": 4.0})
    foreign = Schedule(((SKETCH, "tiled"), ("tile", 5), ("stages", 1), ("order", "row")))
    some = schedules()[:3]
    bound.tell([Result(foreign, 1.0), *(Result(s, math.inf) for s in some), Result(some[0], 1e-3)])
    assert bound.score(schedules()).shape == (84,)
    assert np.isfinite(bound.score(schedules())).all()
    assert bound.score([]).shape == (0,)


def test_its_samples_are_legal_and_better_than_random(prior):
    target = recording("k__new", best=4.1, device="NVIDIA D")
    rng = np.random.default_rng(0)
    for known in (prior, prior.only(lambda e: True)):
        bound = known.for_task(target.space, {"axis M": 4.1}, target.device)
        drawn = [bound.sample(rng) for _ in range(100)]
        assert all(target.space.why_not(s) is None for s in drawn)
        assert np.median(target.true_seconds(drawn)) < np.median(target.seconds)


def test_a_space_too_large_to_look_at_whole(prior):
    knobs = (
        Knob("tile", Family.TILE_SIZES, TILES),
        Knob("stages", Family.SHARED_MEMORY, STAGES),
        Knob("order", Family.LOOP_ORDER, ORDERS),
        *(Knob(f"more{i}", Family.TILE_SIZES, TILES) for i in range(2)),
        Knob("last", Family.TILE_SIZES, tuple(range(1, 81))),
    )
    fits = Constraint("too large", ("tile", "stages"), lambda t, s: t * s <= 64)
    space = ScheduleSpace((SketchSpace("tiled", knobs, (fits,)),))
    bound = prior.for_task(space, {"axis M": 4.0}, "NVIDIA D")
    rng, seen = np.random.default_rng(0), set()
    for _ in range(3):
        asked = bound.propose(rng, 8, seen)
        assert len(set(asked)) == 8
        assert not seen & set(asked)
        assert all(space.why_not(s) is None for s in asked)
        seen |= set(asked)
        bound.tell([Result(s, seconds_of(s, 4.0)) for s in asked])
    assert next(iter(bound.first(1)))["tile"] in (8, 16, 32)


def test_errors_between_tasks_tell_like_from_unlike(prior):
    errors = prior.errors
    assert np.isnan(np.diag(errors)).all()
    assert errors[0, 1] < 0.2 * errors[0, 2]
    assert np.isfinite(measured_errors(prior.experiences[:2], np.random.default_rng(1))[0, 1])
    foretold = expected_errors(prior_space(), {"axis M": 4.1}, "NVIDIA D", prior.experiences, errors)
    assert max(foretold[:2]) < foretold[2] <= FLOOR**2


@pytest.mark.parametrize(
    ("name", "maker"),
    [("NVIDIA H200", "nvidia"), ("AMD Instinct MI250X", "amd"), ("GeForce RTX 3090", "nvidia"), ("someone's", "")],
)
def test_vendors(name, maker):
    assert vendor(name) == maker


def test_a_sketch_that_the_prior_does_not_know_gets_a_fair_trial(prior):
    """The prior alone would propose none of it, though what it knows might be slower than all of it."""
    other = tuple(Knob(f"w{i}", Family.WARPS, (1, 2, 4)) for i in range(4))
    known = (Knob("tile", Family.TILE_SIZES, TILES), Knob("stages", Family.SHARED_MEMORY, STAGES))
    space = ScheduleSpace(
        (SketchSpace("tiled", (*known, Knob("order", Family.LOOP_ORDER, ORDERS))), SketchSpace("new", other))
    )
    bound = prior.for_task(space, {"axis M": 4.0})
    assert bound.sketches == {"tiled"}
    strategy = HybridSearch(space, np.random.default_rng(0), Aids(prior=bound))
    tries = 0
    for _ in range(LEAD):
        (asked,) = strategy.ask(1)
        tries += asked.sketch == "new"
        strategy.tell([Result(asked, 8e-3 if asked.sketch == "new" else seconds_of(asked, 4.0))])
    assert FAIR_TRIES // 2 <= tries <= FAIR_TRIES
