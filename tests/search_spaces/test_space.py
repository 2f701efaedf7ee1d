"""Spaces against brute force, over random small spaces with random limits."""

import itertools
import json
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_spaces.errors import InvalidSchedule, UnknownName
from search_spaces.space import SKETCH, Constraint, Family, Knob, Schedule, ScheduleSpace, SketchSpace

VALUES = st.one_of(
    st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True),
    st.lists(st.sampled_from(["row", "column", "blocked"]), min_size=1, unique=True),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=4, unique=True),
    st.just([False, True]),
)


def total(values):
    """Any values as one number, so that limits can be drawn over knobs of every type."""
    return sum(sum(v) if isinstance(v, tuple) else len(v) if isinstance(v, str) else int(v) for v in values)


@st.composite
def sketch_spaces(draw, name="alpha"):
    knobs = tuple(
        Knob(f"k{i}", draw(st.sampled_from(Family)), tuple(draw(VALUES))) for i in range(draw(st.integers(1, 4)))
    )
    names = [k.name for k in knobs]
    constraints = []
    for i in range(draw(st.integers(0, 3))):
        over = tuple(draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
        compare, bound = draw(st.sampled_from([operator.le, operator.ge])), draw(st.integers(0, 12))
        constraints.append(Constraint(f"limit {i}", over, lambda *v, c=compare, b=bound: c(total(v), b)))
    return SketchSpace(name, knobs, tuple(constraints))


@st.composite
def spaces(draw):
    first = draw(sketch_spaces("alpha"))
    return ScheduleSpace((first, draw(sketch_spaces("beta"))) if draw(st.booleans()) else (first,))


def brute_force(space):
    for sketch in space.sketches:
        names = [k.name for k in sketch.knobs]
        for values in itertools.product(*(k.values for k in sketch.knobs)):
            point = dict(zip(names, values, strict=True))
            if all(c.holds(*(point[n] for n in c.knobs)) for c in sketch.constraints):
                yield Schedule(((SKETCH, sketch.sketch), *point.items()))


def differing(one, other):
    return sum(a != b for a, b in zip(one.items, other.items, strict=True))


@given(spaces())
def test_iteration_is_the_filtered_product_in_order(space):
    assert list(space) == list(brute_force(space))


@given(spaces(), st.integers(0, 99))
def test_samples_are_legal_and_found_where_there_are_any(space, seed):
    legal = set(brute_force(space))
    rng = np.random.default_rng(seed)
    drawn = [space.sample(rng) for _ in range(5)]
    assert set(drawn) <= legal if legal else drawn == [None] * 5


@given(spaces(), st.integers(0, 99))
def test_sampling_under_a_prefix_keeps_it(space, seed):
    rng = np.random.default_rng(seed)
    for schedule in itertools.islice(space, 5):
        for length in range(len(schedule) + 1):
            drawn = space.sample(rng, Schedule(schedule.items[:length]))
            assert drawn is not None
            assert drawn.items[:length] == schedule.items[:length]
            assert space.why_not(drawn) is None


@given(spaces(), st.integers(0, 99))
def test_neighbours_are_all_legal_schedules_one_knob_away(space, seed):
    rng = np.random.default_rng(seed)
    legal = list(brute_force(space))
    for schedule in legal[:4]:
        near = list(space.neighbours(schedule, rng))
        alike = [s for s in legal if s.sketch == schedule.sketch and differing(s, schedule) == 1]
        assert sorted(map(str, near)) == sorted(map(str, alike))
        mutant = space.mutate(schedule, rng)
        assert (mutant in near) if near else mutant is None


@given(spaces(), st.integers(0, 99))
def test_crossings_are_legal(space, seed):
    rng = np.random.default_rng(seed)
    legal = list(brute_force(space))
    for first, second in itertools.product(legal[:4], legal[-4:]):
        if first.sketch == second.sketch:
            child = space.cross(first, second, rng)
            assert child is not None
            assert space.why_not(child) is None


def test_a_crossing_of_compatible_parents_takes_every_value_from_one_of_them():
    knobs = tuple(Knob(f"k{i}", Family.WARPS, tuple(range(9))) for i in range(4))
    space = ScheduleSpace((SketchSpace("a", knobs),))
    rng = np.random.default_rng(0)
    one, other = space.sample(rng), space.sample(rng)
    for _ in range(20):
        child = space.cross(one, other, rng)
        assert all(child[k] in (one[k], other[k]) for k in child.knobs)


@given(spaces())
def test_completion_takes_the_first_legal_in_order(space):
    completed = space.complete(Schedule(), lambda _, options: options)
    assert completed == next(brute_force(space), None)


@given(spaces())
def test_options_and_why_not_agree(space):
    legal = set(brute_force(space))
    for sketch in space.sketches:
        for values in itertools.islice(itertools.product(*(k.values for k in sketch.knobs)), 60):
            prefix = Schedule(((SKETCH, sketch.sketch),))
            walked = True
            for value in values:
                walked &= value in space.options(prefix)
                prefix = prefix.extended(space.next_knob(prefix), value)
            assert space.next_knob(prefix) is None
            assert space.options(prefix) == ()
            assert (space.why_not(prefix) is None) == walked == (prefix in legal)


@given(spaces())
def test_size_counts_what_is_enumerated(space):
    size = space.size(np.random.default_rng(0))
    assert size.exact
    assert size.legal == sum(1 for _ in space)
    assert size.cartesian == size.legal + sum(size.rejected.values())


def test_size_of_a_large_space_is_estimated():
    knobs = tuple(Knob(f"k{i}", Family.WARPS, tuple(range(40))) for i in range(4))
    space = ScheduleSpace(
        (SketchSpace("a", knobs, (Constraint("half", ("k0", "k1", "k2", "k3"), lambda a, *_: a < 20),)),)
    )
    size = space.size(np.random.default_rng(0))
    assert not size.exact
    assert size.legal == pytest.approx(40**4 / 2, rel=0.05)


@given(spaces())
def test_json_round_trip(space):
    for schedule in itertools.islice(space, 10):
        read = Schedule.from_json(json.loads(json.dumps(schedule.to_json())))
        assert read == schedule
        assert read.key == schedule.key
        assert hash(read) == hash(schedule)


@given(sketch_spaces(), st.data())
def test_the_fingerprint_changes_with_what_it_covers(sketch, data):
    space = ScheduleSpace((sketch,))
    at = data.draw(st.integers(0, len(sketch.knobs) - 1))
    knob = sketch.knobs[at]
    changed = [
        Knob(knob.name, knob.family, (*knob.values, "new")),
        Knob(knob.name + "_", knob.family, knob.values),
    ]
    for other in changed:
        knobs = (*sketch.knobs[:at], other, *sketch.knobs[at + 1 :])
        assert ScheduleSpace((SketchSpace("alpha", knobs),)).fingerprint != space.fingerprint
    limited = SketchSpace("alpha", sketch.knobs, (*sketch.constraints, Constraint("x", (knob.name,), lambda _: True)))
    assert ScheduleSpace((limited,)).fingerprint != space.fingerprint
    assert ScheduleSpace((sketch,), "other hardware").fingerprint != space.fingerprint
    assert ScheduleSpace((SketchSpace("alpha", sketch.knobs, sketch.constraints),)).fingerprint == space.fingerprint


def test_the_fingerprint_tells_types_apart():
    prints = {
        ScheduleSpace((SketchSpace("a", (Knob("k", Family.WARPS, values),)),)).fingerprint
        for values in [(1,), ("1",), ((1,),), (True,)]
    }
    assert len(prints) == 4


def test_why_not_names_the_reason():
    knob = Knob("warps", Family.WARPS, (1, 2, 4))
    space = ScheduleSpace(
        (SketchSpace("a", (knob,), (Constraint("needs too many warps", ("warps",), lambda w: w < 4),)),)
    )
    assert space.why_not(Schedule(((SKETCH, "a"), ("warps", 4)))) == "needs too many warps"
    assert "not a value" in space.why_not(Schedule(((SKETCH, "a"), ("warps", 3))))
    assert "does not apply" in space.why_not(Schedule(((SKETCH, "b"), ("warps", 2))))
    assert "knobs are not those" in space.why_not(Schedule(((SKETCH, "a"),)))
    assert "does not apply" in space.why_not(Schedule())


def test_a_space_without_legal_points_ends():
    never = Constraint("never", ("k1",), lambda _: False)
    knobs = tuple(Knob(f"k{i}", Family.WARPS, (1, 2, 3)) for i in range(2))
    space = ScheduleSpace((SketchSpace("a", knobs, (never,)),))
    assert list(space) == []
    assert space.sample(np.random.default_rng(0)) is None


def test_sampling_reaches_every_schedule_where_few_are_legal():
    knobs = tuple(Knob(f"k{i}", Family.WARPS, tuple(range(12))) for i in range(3))
    equal = Constraint("all alike", ("k0", "k1", "k2"), lambda *v: len(set(v)) == 1)
    space = ScheduleSpace((SketchSpace("a", knobs, (equal,)),))
    rng = np.random.default_rng(0)
    assert {space.sample(rng) for _ in range(200)} == set(space)


def test_sketches_of_any_size_are_sampled():
    big = SketchSpace("big", tuple(Knob(f"k{i}", Family.WARPS, tuple(range(100))) for i in range(3)))
    small = SketchSpace("small", (Knob("k", Family.WARPS, (1,)),))
    space = ScheduleSpace((big, small))
    rng = np.random.default_rng(0)
    assert {space.sample(rng).sketch for _ in range(300)} == {"big", "small"}


def test_ill_formed_parts_are_refused():
    knob = Knob("k", Family.WARPS, (1, 2))
    with pytest.raises(ValueError, match="distinct"):
        Knob("k", Family.WARPS, (1, 1))
    with pytest.raises(ValueError, match="present"):
        Knob("k", Family.WARPS, ())
    with pytest.raises(ValueError, match="distinct"):
        SketchSpace("a", (knob, knob))
    with pytest.raises(ValueError, match="names"):
        SketchSpace("a", (knob,), (Constraint("r", ("other",), lambda _: True),))
    with pytest.raises(UnknownName, match="did you mean 'alpha'"):
        ScheduleSpace((SketchSpace("alpha", (knob,)),)).sketch("alhpa")


@pytest.mark.parametrize(
    "data", [{}, {"k": 1}, {"k": 1, "sketch": "a"}, {"sketch": "a", "k": 1.5}, {"sketch": "a", "k": None}]
)
def test_what_is_no_schedule_is_refused(data):
    with pytest.raises(InvalidSchedule):
        Schedule.from_json(data)


def test_a_schedule_reads_like_a_mapping():
    schedule = Schedule(((SKETCH, "a"), ("tile", (8, 4)), ("warps", 2)))
    assert schedule["tile"] == (8, 4)
    assert schedule.integer("warps") == 2
    assert str(schedule) == "a tile=8x4 warps=2"
    assert schedule.knobs == {"tile": (8, 4), "warps": 2}
    with pytest.raises(KeyError):
        schedule["stages"]
    with pytest.raises(InvalidSchedule):
        schedule.integer("tile")


@settings(max_examples=20)
@given(spaces(), st.integers(0, 99))
def test_the_same_seed_draws_the_same(space, seed):
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    assert [space.sample(one) for _ in range(5)] == [space.sample(other) for _ in range(5)]


def test_a_dead_end_is_left_for_the_knob_that_made_it():
    """Between the knob that decides and the one that fails lie ten that have no part in it."""
    between = tuple(Knob(f"k{i}", Family.UNROLLING, (1, 2, 4, 8)) for i in range(10))
    first, last = Knob("first", Family.TILE_SIZES, (1, 2)), Knob("last", Family.TILE_SIZES, (1, 2))
    agree = Constraint("first and last differ too little", ("first", "last"), lambda a, b: a == 2 and b == 1)
    space = ScheduleSpace((SketchSpace("deep", (first, *between, last), (agree,)),))
    asked = []

    def order(prefix, options):
        asked.append(prefix)
        return options

    found = space.complete(Schedule(), order)
    assert (found["first"], found["last"]) == (2, 1)
    assert space.why_not(found) is None
    assert len(asked) == 1 + 12 + 11
    assert space.complete(Schedule((("sketch", "deep"), ("first", 1))), order) is None
    assert len(asked) == 1 + 12 + 11 + 11
