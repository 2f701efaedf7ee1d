"""What is remembered, against sorting everything."""

import math

from hypothesis import given
from hypothesis import strategies as st

from autotune.search.memory import Memory
from search_spaces.space import SKETCH, Schedule

SCHEDULES = [Schedule(((SKETCH, sketch), ("k", i))) for sketch in ("a", "b") for i in range(80)]
TELLING = st.tuples(st.sampled_from(SCHEDULES), st.sampled_from([1.0, 2.0, 3.0, 4.0, math.inf]))


def ranked(told):
    return [s for s, seconds in sorted(told.items(), key=lambda item: item[1]) if math.isfinite(seconds)]


@given(st.lists(TELLING), st.integers(0, 10))
def test_the_best_are_those_of_the_latest_times(tellings, count):
    memory, told = Memory(), {}
    for schedule, seconds in tellings:
        memory.tell(schedule, seconds)
        told[schedule] = seconds
        assert memory.best(count) == ranked(told)[:count]
    assert memory.seen == set(told)
    assert memory.best(1000) == ranked(told)
    first = {sketch: next((s for s in ranked(told) if s.sketch == sketch), None) for sketch in ("a", "b")}
    assert memory.leaders() == [s for s in ranked(told) if s in first.values()]


def test_more_than_are_kept_in_order_are_right_after_one_got_slower():
    memory = Memory()
    for place, schedule in enumerate(SCHEDULES[:80]):
        memory.tell(schedule, 1.0 + place)
    memory.tell(SCHEDULES[0], 1000.0)
    assert memory.best(64) == SCHEDULES[1:65]
    assert memory.best(80) == [*SCHEDULES[1:80], SCHEDULES[0]]


def test_telling_the_same_again_changes_nothing():
    memory = Memory()
    for _ in range(2):
        memory.tell(SCHEDULES[3], 2.0)
    assert memory.best(9) == memory.leaders() == [SCHEDULES[3]]
