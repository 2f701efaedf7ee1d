"""How wrong one task is about another: measured between the tasks learnt from, foretold for a new one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.prior.encoding import Encoding
from autotune.prior.experience import FLOOR, Experience, Floats
from autotune.prior.source import Source, matches
from search_spaces.listed import ListedSpace
from search_spaces.space import ScheduleSpace

# Schedules of a task on which another one is judged.
JUDGED = 600
# Mean squared error, in squared doublings, of a task about itself, and what each unit of distance from the nearest
# task known adds to it.
OWN, STRANGE = 0.02, 0.02
# Tasks so many units further away than the nearest count e times less.
REACH = 1.0
# Distances, where a doubling of one axis is one: another kernel, another vendor, a doubling of all a device's numbers.
OTHER_KERNEL, OTHER_VENDOR, OTHER_DEVICE = 3.0, 3.0, 2.0
_VENDORS = {
    "amd": re.compile(r"amd|radeon|instinct", re.IGNORECASE),
    "nvidia": re.compile(r"nvidia|geforce|tesla|quadro|\brtx|\bgtx|titan", re.IGNORECASE),
    "intel": re.compile(r"intel|xeon", re.IGNORECASE),
}


def measured_errors(experiences: Sequence[Experience], rng: np.random.Generator) -> Floats:
    """Mean squared errors of what each task (column) says of each (row), constants apart; NaN where it says nothing.

    Args:
        experiences: The tasks.
        rng: Draws the schedules on which they are judged.
    """
    errors = np.full((len(experiences), len(experiences)), np.nan)
    for row, judged in enumerate(experiences):
        tables = [(t, r) for t in judged.tables for r in range(len(t.slowdown))]
        chosen = [tables[i] for i in rng.permutation(len(tables))[:JUDGED].tolist()]
        schedules = [table.schedule(place) for table, place in chosen]
        truth = np.minimum([float(table.slowdown[place]) for table, place in chosen], FLOOR)
        space = ListedSpace.of(schedules, identity=judged.name)
        encoding = Encoding(space)
        rows = encoding(schedules)
        for column, other in enumerate(experiences):
            if column != row and (found := matches(space, other)):
                said = Source(other, found, encoding).slowdown(schedules, rows)
                wrong = (said - truth)[~np.isnan(said)]
                errors[row, column] = float(wrong.var()) if len(wrong) else np.nan
    return errors


def expected_errors(
    space: ScheduleSpace,
    context: Mapping[str, float],
    device: str,
    experiences: Sequence[Experience],
    measured: Floats,
) -> Floats:
    """Mean squared errors that each task is expected to make about a new one, shape (experiences,).

    The new task is taken for the tasks most like it: what was wrong about those will be wrong about it.

    Args:
        space: Of the new task.
        context: The new task as numbers.
        device: Its name, "" where it is not known.
        experiences: The tasks.
        measured: What `measured_errors` gave for them.
    """
    own = {s.sketch for s in space.sketches}
    distances = np.array(
        [distance(context, device, e, same=bool(own & {t.sketch for t in e.tables})) for e in experiences]
    )
    likeness = np.exp(-(distances - distances.min()) / REACH)
    table = np.log(np.maximum(np.where(np.eye(len(experiences), dtype=bool), OWN, measured), OWN / 2))
    known = ~np.isnan(table)
    weights = np.where(known, likeness[:, None], 0.0)
    foretold = np.exp((weights * np.nan_to_num(table)).sum(axis=0) / weights.sum(axis=0))
    return np.asarray(foretold + STRANGE * distances.min())


def distance(context: Mapping[str, float], device: str, experience: Experience, *, same: bool) -> float:
    """How unlike a new task and one learnt from are.

    Args:
        context: The new task as numbers.
        device: The new task's, "" where it is not known.
        experience: The other.
        same: Whether they have a sketch in common.
    """
    other = experience.context
    axes = [abs(context[n] - other[n]) for n in context if n in other and (n.startswith("axis ") or n == "bits")]
    numbers = [abs(context[n] - other[n]) for n in context if n in other and n.startswith("device ")]
    ours, theirs = vendor(device), vendor(experience.device)
    return (
        sum(axes)
        + OTHER_DEVICE * (sum(numbers) / max(1, len(numbers)))
        + OTHER_KERNEL * (not same)
        + OTHER_VENDOR * (bool(ours and theirs) and ours != theirs)
    )


def vendor(device: str) -> str:
    """Who made a device, by its name; "" where that does not tell."""
    return next((name for name, words in _VENDORS.items() if words.search(device)), "")
