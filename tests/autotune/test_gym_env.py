"""Tuning as a Gymnasium environment: the checker's rules, masks, rewards, a recording and the device."""

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env

from autotune.gym_env import AdjustSchedule, BuildSchedule, LiveTask
from autotune.measurement import Policy, Status
from autotune.recordings.recording import Recording
from search_spaces.hardware import cpu_hardware
from search_spaces.listed import ListedSpace
from search_spaces.space import SKETCH, Constraint, Family, Knob, Schedule, ScheduleSpace, SketchSpace
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

DESIGNS = [AdjustSchedule, BuildSchedule]
TOY = f"{Path(__file__).parents[1] / 'support' / 'toy.py'}:Toy"
CONTEXT = {"bits": 32.0, "device units": 6.5}


def space():
    """Two sketches, a limit, and one choice (a=4) that leads nowhere."""
    knobs = (Knob("a", Family.WARPS, (1, 2, 4)), Knob("b", Family.UNROLLING, (1, 2, 3)))
    limit = Constraint("too much", ("a", "b"), lambda a, b: a * b <= 3)
    other = SketchSpace("other", (Knob("c", Family.LOOP_ORDER, ("row", "column")),))
    return ScheduleSpace((SketchSpace("one", knobs, (limit,)), other))


def seconds(schedule, rng):
    if schedule.sketch == "other":
        return 1.0 if schedule["c"] == "row" else math.inf
    return 2.0 + schedule.integer("a") * schedule.integer("b")


def recording():
    """A listed space with gaps, noise and failures."""
    schedules = [
        Schedule(((SKETCH, "k"), ("x", x), ("y", y))) for x in (1, 2, 4, 8) for y in (1, 2, 4) if (x, y) != (8, 4)
    ]
    times = np.array([math.inf if s["x"] == 1 else 1e-3 * s.integer("x") + 1e-4 * s.integer("y") for s in schedules])
    ok = np.isfinite(times)
    status = tuple(Status.OK if fine else Status.LAUNCH_ERROR for fine in ok)
    noise, cost = np.where(ok, 1e-6, 0.0), np.ones(len(times))
    return Recording("k__d", "k", "d", ListedSpace.of(schedules), times, noise, cost, status)


@pytest.fixture(params=DESIGNS, ids=lambda d: d.__name__)
def design(request):
    return request.param


def played(env, steps, seed=0):
    """Random legal actions; what each step gave, with the schedule before and after it."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    taken = []
    for _ in range(steps):
        before = env.schedule
        action = int(rng.choice(np.flatnonzero(env.action_masks())))
        _, reward, terminated, truncated, info = env.step(action)
        taken.append((before, env.schedule, reward, terminated, truncated, info))
        if terminated or truncated:
            env.reset()
    return taken


def test_gymnasiums_own_check_passes(design):
    with warnings.catch_warnings():
        # That bounds are infinite, and that it is not made through gymnasium.make.
        warnings.filterwarnings("ignore", category=UserWarning)
        check_env(design(space(), seconds, CONTEXT), skip_render_check=True)
        check_env(design(recording().space, recording().measure), skip_render_check=True)


def test_legal_actions_stay_in_the_space(design):
    where = space()
    complete = [s for _, s, *_ in played(design(where, seconds, CONTEXT), 200) if where.next_knob(s) is None]
    assert complete
    assert {where.why_not(s) for s in complete} == {None}
    assert {s.sketch for s in complete} == {"one", "other"} or design is AdjustSchedule


def test_an_adjustment_changes_one_knob():
    for before, after, *_ in played(AdjustSchedule(space(), seconds), 100):
        differing = [a for a, b in zip(before.items, after.items, strict=True) if a != b]
        assert len(differing) == 1 or before.sketch != after.sketch


def test_the_mask_is_what_can_be_changed():
    env = AdjustSchedule(space(), seconds)
    env.reset(options={"schedule": Schedule(((SKETCH, "one"), ("a", 1), ("b", 1)))})
    moves = [m for m, legal in zip(env._moves, env.action_masks(), strict=True) if legal]
    assert moves == [("one", "a", 2), ("one", "b", 2), ("one", "b", 3)]


def test_the_mask_is_what_the_options_offer():
    env = BuildSchedule(space(), seconds)
    env.reset()
    assert env.action_masks().tolist() == [True, True, False]
    env.step(0)
    env.step(1)
    assert env.schedule == Schedule(((SKETCH, "one"), ("a", 2)))
    assert env.action_masks().tolist() == [True, False, False]


def test_a_dead_end_ends_the_episode_without_a_reward():
    env = BuildSchedule(space(), seconds)
    env.reset()
    env.step(0)
    _, reward, terminated, _, info = env.step(2)
    assert (reward, terminated, info["measured"]) == (0.0, True, 0)


def test_a_forbidden_action_changes_nothing(design):
    env = design(space(), seconds)
    env.reset(seed=1)
    before, known = env.schedule, dict(env.known)
    forbidden = int(np.flatnonzero(~env.action_masks())[0])
    _, reward, terminated, _, _ = env.step(forbidden)
    assert (env.schedule, env.known, reward, terminated) == (before, known, 0.0, False)


def test_rewards_are_relative_and_failures_get_none():
    env = BuildSchedule(space(), seconds)
    got = {}
    for actions in ((0, 0, 0), (1, 0), (1, 1), (0, 0, 1)):
        env.reset()
        for action in actions:
            _, got[actions], ended, _, info = env.step(action)
        assert ended
    assert got[0, 0, 0] == 1.0
    assert got[1, 0] == 1.0
    assert got[1, 1] == 0.0
    assert 0.0 < got[0, 0, 1] < 0.5
    assert (info["measured"], info["failures"], info["best_seconds"]) == (4, 1, 1.0)


def test_nothing_is_measured_twice_and_going_back_gains_nothing():
    asked = []

    def counted(schedule, rng):
        asked.append(schedule)
        return seconds(schedule, rng)

    env = AdjustSchedule(space(), counted)
    env.reset(options={"schedule": Schedule(((SKETCH, "one"), ("a", 2), ("b", 1)))})
    back = env._moves.index(("one", "a", 2))
    forth = env._moves.index(("one", "a", 1))
    _, gained, *_ = env.step(forth)
    assert gained == 1.0
    assert [env.step(a)[1] for a in (back, forth, back)] == [0.0, 0.0, 0.0]
    assert len(asked) == len(set(asked)) == 2


def test_episodes_of_adjustments_are_cut():
    taken = played(AdjustSchedule(recording().space, recording().measure, steps=5), 20)
    assert [truncated for *_, truncated, _ in taken] == 4 * ([False] * 4 + [True])


def test_the_same_seed_plays_the_same(design):
    first, second = (played(design(recording().space, recording().measure, seed=3), 40, seed=5) for _ in range(2))
    assert [t[:3] for t in first] == [t[:3] for t in second]


def test_observations_say_what_is_decided():
    env = BuildSchedule(space(), seconds, CONTEXT)
    empty, _ = env.reset()
    assert not empty.any()
    decided, *_ = env.step(0)
    more, *_ = env.step(1)
    columns = len(env._features.columns)
    assert more[columns : 2 * columns].sum() == decided[columns : 2 * columns].sum() + 1
    assert more[-2:].tolist() == [32.0, 6.5]


def test_the_package_does_not_load_gymnasium():
    code = "import sys, autotune, autotune.cli; sys.exit('gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def live(task, folder):
    measure = LiveTask(task, folder, Policy(samples=2))
    try:
        return played(AdjustSchedule(task.space, measure, derived=lambda s: task.sketch_of(s).derived(task, s)), 3)
    finally:
        measure.close()


def test_it_runs_on_the_device(tmp_path):
    hardware = cpu_hardware("test", 2, 1 << 20, 1e13, {"float32": 1e15})
    taken = live(Task(TOY, find_operator(TOY).workload("llvm"), Target("llvm"), hardware), tmp_path)
    assert all(0 < info["best_seconds"] < math.inf for *_, info in taken)
    assert taken[-1][-1]["measured"] >= 2


@pytest.mark.slow
def test_it_runs_on_llvm(tmp_path):
    hardware = cpu_hardware("test", 2, 1 << 20, 1e13, {"float32": 1e15})
    workload = find_operator("matmul").workload("llvm", M=64, N=64, K=64)
    taken = live(Task("matmul", workload, Target("llvm"), hardware), tmp_path)
    assert all(info["failures"] < info["measured"] for *_, info in taken)


@pytest.mark.slow
def test_the_worked_example_trains_an_agent(tmp_path):
    pytest.importorskip("sb3_contrib")
    root = Path(__file__).parents[2] / "experiments"
    command = [sys.executable, root / "examples" / "train_ppo_sb3.py", root / "spaces" / "pnpoly__rtx3090.recording.gz"]
    out = tmp_path / "result.json"
    ended = subprocess.run(
        [*command, "--steps", "256", "--seeds", "1", "--out", out], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    result = json.loads(out.read_text())
    assert result["adjust"]["measured"][0] > 50
    assert 0.3 < result["adjust"]["50"]["median_share_of_optimum"] <= 1.0
    assert set(result["random"]) == {"50", "100", "200", "400"}
