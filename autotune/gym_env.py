"""Tuning as a Gymnasium environment with action masks, so that any agent can be trained on it (extra `gym`).

Two designs of the actions: `AdjustSchedule` changes one knob of a complete schedule, `BuildSchedule` decides the next
knob of a partial one. Both run over whatever gives the time of a schedule: a recording (`recording.measure`) or the
device (`LiveTask`). Masks are given by `action_masks()`, where sb3-contrib's MaskablePPO looks for them, and as
`info["action_mask"]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.devices.choice import FIRST
from autotune.executors.base import Measuring, Site
from autotune.executors.local import Local
from autotune.measurement import Policy
from autotune.measurer import Measurer
from autotune.policy.reward import rewards
from cost_models.features import Derived, Features
from search_spaces import registry
from search_spaces.schedule import SKETCH, Schedule, Value
from search_spaces.space import ScheduleSpace
from search_spaces.task import Task

gymnasium: Any = registry.optional("gymnasium", "gym")

# Seconds of a schedule, `inf` where it fails; the generator draws the noise where it is a recording's.
Measure = Callable[[Schedule, np.random.Generator], float]
Observation = NDArray[np.float32]
_POLL_SECONDS = 0.25


class LiveTask:
    """Measures schedules of a task on the device at hand, one at a time.

    Args:
        task: Whose schedules they are.
        folder: Scratch folder of the builds.
        policy: How they are measured.
        jobs: Builder processes.
        device: A device class by name or file, "" for the one of the target's kind.

    Raises:
        NoDevice: The device is not there.
    """

    def __init__(self, task: Task, folder: Path, policy: Policy | None = None, jobs: int = 1, device: str = "") -> None:
        executor = Local(Site(devices=FIRST), folder)
        self._measurer = Measurer(executor, Measuring(task, policy or Policy(), device), jobs)
        self._measurer.device()

    def __call__(self, schedule: Schedule, rng: np.random.Generator) -> float:
        """Its seconds, `inf` where it failed to build, run or verify."""
        self._measurer.submit([schedule])
        while not (done := self._measurer.completed(_POLL_SECONDS)):
            continue
        return done[0].seconds

    def close(self) -> None:
        """Lets go of the device."""
        self._measurer.close()


class TuningEnv(gymnasium.Env):  # type: ignore[misc]
    """What both designs share: measuring, rewards and observations.

    An observation holds the knobs' values and derived numbers scaled to [0, 1], for each of them whether it is known,
    the reward of the schedule, and the numbers of the task as given. The reward of a schedule is half the best time
    so far over its own, half its rank among what was measured; 0 where it failed, or was met before in the episode.
    Nothing is measured twice. An action that the mask forbids changes nothing and gets 0.

    Args:
        space: The schedules.
        measure: Gives their times.
        context: The task as numbers, see `cost_models.context`.
        derived: Further numbers of a complete schedule.
        seed: Of the noise of measurements.

    Attributes:
        known: Seconds of what was measured, in order, `inf` where it failed.
        schedule: Where the episode stands.
    """

    metadata: Mapping[str, object] = {"render_modes": []}

    def __init__(
        self,
        space: ScheduleSpace,
        measure: Measure,
        context: Mapping[str, float] | None = None,
        derived: Derived | None = None,
        seed: int = 0,
    ) -> None:
        self.space = space
        self.known: dict[Schedule, float] = {}
        self.schedule = Schedule()
        self._measure = measure
        self._noise = np.random.default_rng(seed)
        self._features = Features(space, derived)
        self._context = np.array(list((context or {}).values()), np.float32)
        self._reward = 0.0
        self._visited: set[Schedule] = set()
        size = 2 * len(self._features.columns) + 1 + len(self._context)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32)

    @property
    def failures(self) -> int:
        """How many of the schedules measured failed."""
        return sum(math.isinf(t) for t in self.known.values())

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, shape (actions,)."""
        raise NotImplementedError

    def _arrive(self, schedule: Schedule) -> float:
        """The reward of a complete schedule, which is measured where it is new."""
        self.schedule = schedule
        if schedule not in self.known:
            self.known[schedule] = self._measure(schedule, self._noise)
        times = np.array(list(self.known.values()))
        self._reward = float(rewards(np.array([self.known[schedule]]), times)[0])
        again = schedule in self._visited
        self._visited.add(schedule)
        return 0.0 if again else self._reward

    def _observation(self) -> Observation:
        row = [self.schedule]
        known = ~np.isnan(self._features(row)[0])
        parts = (self._features.unit(row)[0] * known, known, [self._reward], self._context)
        return np.concatenate(parts, dtype=np.float32, casting="unsafe")

    def _info(self) -> dict[str, Any]:
        return {
            "action_mask": self.action_masks().astype(np.int8),
            "seconds": self.known.get(self.schedule),
            "best_seconds": min(self.known.values(), default=math.inf),
            "measured": len(self.known),
            "failures": self.failures,
        }


class AdjustSchedule(TuningEnv):
    """State: a complete schedule; action: one of its knobs gets another legal value; reward: that of what results.

    An episode starts at a random schedule, or at `options["schedule"]`, keeps to its sketch and is cut after `steps`
    actions.

    Args:
        space: The schedules.
        measure: Gives their times.
        context: The task as numbers.
        derived: Further numbers of a complete schedule.
        seed: Of the noise of measurements.
        steps: Length of an episode.
    """

    def __init__(
        self,
        space: ScheduleSpace,
        measure: Measure,
        context: Mapping[str, float] | None = None,
        derived: Derived | None = None,
        seed: int = 0,
        steps: int = 32,
    ) -> None:
        super().__init__(space, measure, context, derived, seed)
        knobs = [(sketch.sketch, knob) for sketch in space.sketches for knob in sketch.knobs]
        self._moves: list[tuple[str, str, Value]] = [(s, knob.name, v) for s, knob in knobs for v in knob.values]
        self._steps = steps
        self._taken = 0
        self.action_space = gymnasium.spaces.Discrete(len(self._moves))

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Goes to the first schedule and measures it."""
        super().reset(seed=seed)
        given = (options or {}).get("schedule")
        start = given if given is not None else self.space.sample(self.np_random)
        if start is None:
            raise ValueError("a space without legal schedules cannot be tuned")
        self._taken = 0
        self._visited = set()
        self._arrive(start)
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Changes one knob and measures what results."""
        moved = self._moved(int(action))
        reward = 0.0 if moved is None else self._arrive(moved)
        self._taken += 1
        return self._observation(), reward, False, self._taken >= self._steps, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """Changes to another legal value; all where there is none, since an agent must do something."""
        mask = np.array([self._moved(action) is not None for action in range(len(self._moves))])
        return mask if mask.any() else np.ones_like(mask)

    def _moved(self, action: int) -> Schedule | None:
        sketch, knob, value = self._moves[action]
        if sketch != self.schedule.sketch or self.schedule[knob] == value:
            return None
        return self.space.changed(self.schedule, knob, value)


class BuildSchedule(TuningEnv):
    """State: a partial schedule; action: which value its next decision gets; reward: at the end, that of the whole.

    An action is the value's place among those of the knob (of the sketches, for the first decision). An episode ends
    with a complete schedule, or without a reward at a dead end.

    Args:
        space: The schedules.
        measure: Gives their times.
        context: The task as numbers.
        seed: Of the noise of measurements.
    """

    def __init__(
        self, space: ScheduleSpace, measure: Measure, context: Mapping[str, float] | None = None, seed: int = 0
    ) -> None:
        # What is derived of a schedule is not defined before it is complete.
        super().__init__(space, measure, context, None, seed)
        self._first: tuple[Value, ...] = tuple(s.sketch for s in space.sketches)
        widest = max(len(values) for values in (self._first, *(k.values for s in space.sketches for k in s.knobs)))
        self.action_space = gymnasium.spaces.Discrete(widest)

    def reset(
        self, *, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Goes back to the empty schedule; with one sketch to that sketch."""
        super().reset(seed=seed)
        self.schedule = Schedule() if len(self._first) > 1 else Schedule(((SKETCH, self._first[0]),))
        self._reward = 0.0
        self._visited = set()
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Decides; measures where that completes the schedule."""
        values, reward, ended = self._values(), 0.0, False
        if int(action) < len(values) and values[int(action)] in self.space.options(self.schedule):
            name = self.space.next_knob(self.schedule)
            assert name is not None
            self.schedule = self.schedule.extended(name, values[int(action)])
            complete = self.space.next_knob(self.schedule) is None
            reward = self._arrive(self.schedule) if complete else 0.0
            ended = complete or not self.space.options(self.schedule)
        return self._observation(), reward, ended, False, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """What `options` offers; all where the episode has ended."""
        options = set(self.space.options(self.schedule))
        mask = np.zeros(self.action_space.n, np.bool_)
        mask[: len(self._values())] = [value in options for value in self._values()]
        return mask if mask.any() else np.ones_like(mask)

    def _values(self) -> tuple[Value, ...]:
        """Of the next decision, legal or not; () where there is none."""
        if not self.schedule.items:
            return self._first
        knobs = self.space.sketch(self.schedule.sketch).knobs
        return knobs[len(self.schedule) - 1].values if len(self.schedule) <= len(knobs) else ()

    def _observation(self) -> Observation:
        return super()._observation() if self.schedule.items else np.zeros(self.observation_space.shape, np.float32)
