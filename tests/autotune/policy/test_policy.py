"""The policy: legal draws, right gradients, learning, and files that lose nothing."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.policy.decisions import Decisions
from autotune.policy.learning import Demonstration, Learning, clipped_loss, likelihood_loss
from autotune.policy.policy import Policy
from autotune.policy.reward import rewards
from search_spaces.errors import BadLog, CannotWrite
from search_spaces.listed import ListedSpace
from search_spaces.space import SKETCH, Constraint, Family, Knob, Schedule, ScheduleSpace, SketchSpace

CONTEXT = {"units": 7.0, "bits": 16.0}


def rng(seed=0):
    return np.random.default_rng(seed)


def knob(name, *values):
    return Knob(name, Family.TILE_SIZES, values)


def mixed():
    """Two sketches with values of every kind, limits over earlier, later and distant knobs, and a dead end at a=8."""
    tiles = tuple(t for t in product((1, 2, 4), repeat=3) if math.prod(t) == 4)
    first = SketchSpace(
        "first",
        (knob("a", 1, 2, 4, 8), knob("tile", *tiles), knob("b", 1, 3, 5), knob("word", "row", "column")),
        (
            Constraint("too large", ("b", "a"), lambda b, a: a * b <= 7),
            Constraint("not so", ("word", "a", "tile"), lambda w, a, t: w == "row" or a >= t[0]),
        ),
    )
    return ScheduleSpace((first, SketchSpace("second", (knob("b", 0, -1, 2), knob("flag", False, True)))))


def listed():
    schedules = [
        Schedule(((SKETCH, "k"), ("x", x), ("y", y), ("z", z)))
        for x, y, z in product((1, 2, 4), (1, 2, 3), (8, 16))
        if (x * y + z) % 3
    ]
    return ListedSpace.of(schedules)


def separable():
    """8,000 schedules whose reward is a sum over the knobs; x=4, y=7, z=16 is best."""
    return ScheduleSpace((SketchSpace("s", tuple(knob(n, *range(1, 21)) for n in "xyz")),))


def separable_reward(schedule):
    return -sum(abs(schedule.integer(n) - best) / 20 for n, best in (("x", 4), ("y", 7), ("z", 16)))


def taught(space, seed=0, width=8):
    """A policy far from its beginnings."""
    policy = Policy(seed, width)
    shown = [space.sample(rng(i)) for i in range(6)]
    demonstration = Demonstration(CONTEXT, space, shown, np.arange(1.0, 7.0))
    other = Demonstration({"units": 5.0, "bits": 32.0}, space, shown[:3], np.ones(3))
    policy.clone([demonstration, other], rng(1), Learning(rate=0.1, epochs=10))
    return policy


@pytest.mark.parametrize("space", [mixed(), listed(), separable()], ids=["mixed", "listed", "separable"])
@pytest.mark.parametrize("uniform", [0.0, 0.5])
def test_draws_are_legal(space, uniform):
    policy = taught(space)
    drawn = policy.sample(space, CONTEXT, rng(), 300, uniform)
    assert len(drawn) == 300
    assert {space.why_not(s) for s in drawn} == {None}
    adjusted = policy.adjust(space, CONTEXT, drawn, rng(), 0.5, uniform)
    assert len(adjusted) > 200
    assert {space.why_not(s) for s in adjusted} == {None}


@st.composite
def spaces(draw):
    """Small spaces with random tables as limits, dead ends included."""
    sketches = []
    for number in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
        knobs = tuple(knob(f"k{i}", *range(1, size + 1)) for i, size in enumerate(sizes))
        limits = []
        for _ in range(draw(st.integers(0, 3))):
            named = tuple(draw(st.lists(st.sampled_from([k.name for k in knobs]), min_size=1, max_size=3, unique=True)))
            seed, share = draw(st.integers(0, 99)), draw(st.sampled_from([0.3, 0.6, 0.9]))
            limits.append(
                Constraint("table", named, lambda *v, seed=seed, share=share: rng([seed, *v]).random() < share)
            )
        sketches.append(SketchSpace(f"s{number}", knobs, tuple(limits)))
    return ScheduleSpace(tuple(sketches))


@given(spaces(), st.integers(0, 99))
@settings(max_examples=60, deadline=None)
def test_draws_of_any_space_are_legal_and_none_only_where_there_is_none(space, seed):
    drawn = Policy().sample(space, {}, rng(seed), 20)
    assert len(drawn) == (20 if next(iter(space), None) else 0)
    assert {space.why_not(s) for s in drawn} <= {None}


@given(spaces())
@settings(max_examples=60, deadline=None)
def test_the_mask_is_what_options_offer(space):
    decisions = Decisions(space)
    for schedule in list(space)[:20]:
        (group,) = decisions.groups([schedule])
        prefix = Schedule()
        for step, mask, (name, value) in zip(
            decisions.sketches[group.sketch].steps, group.masks, schedule.items, strict=True
        ):
            offered = tuple(v for v, legal in zip(step.values, mask[0], strict=True) if legal)
            assert offered == space.options(prefix)
            prefix = prefix.extended(name, value)


def test_a_limit_over_more_prefixes_than_a_number_can_count():
    knobs = tuple(knob(f"k{i}", *range(1, 101)) for i in range(12))
    limit = Constraint("odd", tuple(k.name for k in knobs), lambda *v: sum(v) % 2 == 0)
    space = ScheduleSpace((SketchSpace("s", knobs, (limit,)),))
    drawn = Policy().sample(space, {}, rng(), 50)
    assert {space.why_not(s) for s in drawn} == {None}
    assert len(set(drawn)) == 50


def test_probabilities_without_dead_ends_add_up_to_one():
    space = listed()
    total = np.exp(taught(space).log_prob(space, CONTEXT, space.schedules)).sum()
    assert total == pytest.approx(1.0)


def test_draws_follow_the_probabilities():
    space = listed()
    policy = taught(space)
    drawn = policy.sample(space, CONTEXT, rng(), 20_000)
    shares = np.array([drawn.count(s) for s in space.schedules]) / len(drawn)
    np.testing.assert_allclose(shares, np.exp(policy.log_prob(space, CONTEXT, space.schedules)), atol=0.015)


def test_backtracking_reaches_what_lies_beyond_dead_ends():
    space = mixed()
    drawn = set(Policy().sample(space, {}, rng(), 4000))
    assert drawn == set(space)


@pytest.mark.parametrize("space", [mixed(), listed()], ids=["mixed", "listed"])
@pytest.mark.parametrize("kind", ["clipped", "likelihood"])
def test_gradients_are_those_of_finite_differences(space, kind):
    policy = taught(space, width=3)
    schedules = [space.sample(rng(i)) for i in range(12)]
    groups = Decisions(space).groups(schedules)
    if kind == "clipped":
        before = policy.log_prob(space, CONTEXT, schedules) + rng(2).normal(0, 0.3, 12)
        loss = clipped_loss(before, rng(3).normal(size=12), 0.2)
    else:
        loss = likelihood_loss(rng(3).random(12))
    learning = Learning(entropy=0.1)
    _, gradient, touched = policy.gradient(space, CONTEXT, groups, loss, learning)
    step, values = 1e-6, policy.table.values
    numeric = np.zeros_like(values)
    for place in np.ndindex(*values.shape):
        if place[0] == 0:
            continue
        kept = values[place]
        sides = []
        for side in (step, -step):
            values[place] = kept + side
            sides.append(policy.gradient(space, CONTEXT, groups, loss, learning)[0])
        values[place] = kept
        numeric[place] = (sides[0] - sides[1]) / (2 * step)
    assert np.abs(numeric).max() > 0.01
    np.testing.assert_allclose(gradient[1:], numeric[1:], atol=1e-7)
    untouched = np.setdiff1d(np.arange(1, len(values)), touched)
    assert not numeric[untouched].any()


def test_it_learns_a_separable_optimum():
    space, policy, draws = separable(), Policy(), rng()
    for _ in range(60):
        drawn = policy.sample(space, {}, draws, 64)
        policy.update(space, {}, drawn, np.array([separable_reward(s) for s in drawn]), Learning(entropy=0.0))
    drawn = policy.sample(space, {}, draws, 200)
    assert Schedule(((SKETCH, "s"), ("x", 4), ("y", 7), ("z", 16))) in drawn
    assert np.mean([separable_reward(s) for s in drawn]) > -0.1  # random draws: about -0.8


def test_the_entropy_floor_keeps_it_from_freezing():
    space, left = separable(), {}
    for floor in (0.0, 0.5):
        policy, draws = Policy(), rng()
        for _ in range(60):
            drawn = policy.sample(space, {}, draws, 64)
            gained = np.array([separable_reward(s) for s in drawn])
            policy.update(space, {}, drawn, gained, Learning(entropy=0.0, floor=floor, rescue=1.0))
        drawn = policy.sample(space, {}, draws, 500)
        left[floor] = -policy.log_prob(space, {}, drawn).mean() / math.log(len(list(space)))
    assert left[0.5] > 0.4
    assert left[0.0] < 0.3


def test_equal_rewards_teach_nothing():
    space, policy = listed(), Policy()
    before = policy.log_prob(space, {}, space.schedules)
    policy.update(space, {}, space.schedules, np.zeros(len(space.schedules)), Learning(entropy=0.0))
    np.testing.assert_array_equal(policy.log_prob(space, {}, space.schedules), before)


def test_it_imitates_by_weight():
    space = listed()
    often, seldom, never = space.schedules[:3]
    policy = Policy()
    policy.clone(
        [Demonstration({}, space, [often, seldom, never], np.array([3.0, 1.0, 0.0]))], rng(), Learning(epochs=400)
    )
    shares = np.exp(policy.log_prob(space, {}, [often, seldom, never]))
    assert shares[0] > 2 * shares[1] > 8 * shares[2]


def test_one_policy_tells_tasks_apart_by_their_numbers():
    space = separable()
    small, large = (Schedule(((SKETCH, "s"), ("x", v), ("y", v), ("z", v))) for v in (2, 18))
    policy = Policy()
    shown = [Demonstration({"units": u}, space, [s], np.ones(1)) for u, s in ((4.0, small), (8.0, large))]
    policy.clone(shown, rng(), Learning(epochs=150))
    for units, own, other in ((4.0, small, large), (8.0, large, small)):
        likely, unlikely = policy.log_prob(space, {"units": units}, [own, other])
        assert likely > unlikely + 3


def test_one_policy_learns_a_kernel_without_touching_another():
    policy = taught(listed())
    schedules = list(listed().schedules)
    before = policy.log_prob(listed(), {}, schedules)
    drawn = [separable().sample(rng(i)) for i in range(20)]
    policy.update(separable(), {}, drawn, np.array([separable_reward(s) for s in drawn]))
    np.testing.assert_array_equal(policy.log_prob(listed(), {}, schedules), before)


def test_what_it_was_not_taught_of_starts_neutral():
    policy = taught(separable())
    unseen = listed()
    fresh = Policy().log_prob(unseen, CONTEXT, unseen.schedules)
    np.testing.assert_array_equal(policy.log_prob(unseen, CONTEXT, unseen.schedules), fresh)
    wider = ScheduleSpace((SketchSpace("s", (*(knob(n, *range(1, 21)) for n in "xyz"), knob("new", "p", "q", "r"))),))
    known = separable().sample(rng())
    extended = [known.extended("new", value) for value in "pqr"]
    old = policy.log_prob(separable(), CONTEXT, [known])[0]
    np.testing.assert_allclose(policy.log_prob(wider, CONTEXT, extended), old - math.log(3))


def test_a_value_never_seen_has_the_share_of_its_size():
    space = ScheduleSpace((SketchSpace("s", (knob("x", 1, 2, 4, 8, 32, 64, 128),)),))
    policy = Policy()
    shown = [Schedule(((SKETCH, "s"), ("x", x))) for x in (32, 64, 128)]
    policy.clone([Demonstration({}, space, shown, np.ones(3))], rng(), Learning(epochs=100))
    wider = ScheduleSpace((SketchSpace("s", (knob("x", 3, 96),)),))
    few, many = policy.log_prob(wider, {}, [Schedule(((SKETCH, "s"), ("x", x))) for x in (3, 96)])
    assert many > few + 2


def test_the_same_seed_learns_the_same():
    ends = []
    for _ in range(2):
        space, policy, draws = mixed(), Policy(7), rng(8)
        for _ in range(5):
            drawn = policy.sample(space, CONTEXT, draws, 32)
            policy.update(space, CONTEXT, drawn, np.array([len(str(s)) for s in drawn], float))
        ends.append((policy.sample(space, CONTEXT, draws, 32), policy.log_prob(space, CONTEXT, drawn).tolist()))
    assert ends[0] == ends[1]
    assert Policy(7).sample(mixed(), {}, rng(1), 32) != Policy(7).sample(mixed(), {}, rng(2), 32)


def test_keeping_everything_changes_nothing_and_nothing_kept_is_a_new_draw():
    space = listed()
    policy, start = taught(space), [space.schedules[0]] * 200
    assert policy.adjust(space, CONTEXT, start, rng(), 1.0) == start
    assert len(set(policy.adjust(space, CONTEXT, start, rng(), 0.0))) > 3


def test_files_give_the_same_probabilities(tmp_path):
    space = mixed()
    policy = taught(space)
    policy.save(tmp_path / "policy.npz")
    loaded = Policy.load(tmp_path / "policy.npz")
    schedules = list(space)
    for context in (CONTEXT, {}, {"units": 99.0, "unheard of": 1.0}):
        np.testing.assert_array_equal(
            loaded.log_prob(space, context, schedules), policy.log_prob(space, context, schedules)
        )
    assert loaded.sample(space, CONTEXT, rng(3), 50) == policy.sample(space, CONTEXT, rng(3), 50)
    loaded.update(space, CONTEXT, schedules[:4], np.arange(4.0))
    assert (loaded.log_prob(space, CONTEXT, schedules) != policy.log_prob(space, CONTEXT, schedules)).any()


def test_files_that_are_none_are_refused_in_one_line(tmp_path):
    path = tmp_path / "policy.npz"
    taught(listed()).save(path)
    whole = path.read_bytes()
    method = whole.index(b"PK\x01\x02") + 10
    damaged = {
        "packed in an unknown way": whole[:method] + b"\x63\x00" + whole[method + 2 :],
        "empty": b"",
        "words": b"hello\nworld",
        "cut": whole[: len(whole) // 2],
        "flipped": whole[:200] + bytes(b ^ 0xFF for b in whole[200:400]) + whole[400:],
    }
    for content in damaged.values():
        path.write_bytes(content)
        with pytest.raises(BadLog, match="is no policy, or is damaged") as caught:
            Policy.load(path)
        assert "\n" not in str(caught.value)
    with pytest.raises(BadLog, match="is no policy"):
        Policy.load(tmp_path / "absent.npz")
    with pytest.raises(CannotWrite):
        taught(listed()).save(tmp_path / "absent" / "policy.npz")


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("version", np.array(2)),
        ("names", np.array(["one"])),
        ("values", np.full((3, 3), np.nan)),
        ("names", np.array([{}], dtype=object)),
        ("scales", np.array([[0.0, 0.0], [0.0, 1.0]])),
    ],
)
def test_files_with_wrong_content_are_refused(tmp_path, field, content):
    path = tmp_path / "policy.npz"
    taught(listed()).save(path)
    with np.load(path) as file:
        parts = dict(file)
    np.savez(path, **{**parts, field: content})
    with pytest.raises(BadLog):
        Policy.load(path)


@given(st.lists(st.one_of(st.floats(1e-6, 1.0), st.just(math.inf)), min_size=1, max_size=30))
@settings(deadline=None)
def test_rewards_are_relative(times):
    seconds = np.array(times)
    gained = rewards(seconds)
    assert ((gained >= 0) & (gained <= 1)).all()
    assert (gained[np.isinf(seconds)] == 0).all()
    if np.isfinite(seconds).any():
        assert gained[seconds.argmin()] == 1.0
        order = np.argsort(seconds)
        assert (np.diff(gained[order]) <= 0).all()
    np.testing.assert_allclose(rewards(seconds * 1024.0), gained)


def test_demonstrations_need_weights():
    with pytest.raises(ValueError, match="weights"):
        Demonstration({}, listed(), list(listed().schedules)[:2], np.zeros(2))


def test_it_finds_its_way_out_of_distant_dead_ends():
    """To go back one decision at a time would try all of the eight knobs that lie between cause and dead end."""
    between = tuple(knob(f"k{i}", *range(16)) for i in range(8))
    limit = Constraint("too much", ("first", "last"), lambda first, last: first == 1 and last == 1)
    space = ScheduleSpace((SketchSpace("s", (knob("first", *range(1, 101)), *between, knob("last", 1, 2)), (limit,)),))
    drawn = Policy().sample(space, {}, rng(), 20)
    assert {space.why_not(s) for s in drawn} == {None}
    assert len(set(drawn)) == 20
