"""A schedule of one space in another stays as near as values and limits there allow."""

import pytest

from autotune.adapting import distance, nearest
from search_spaces.space import Constraint, Family, Knob, ScheduleSpace, SketchSpace

SPACE = ScheduleSpace(
    (
        SketchSpace(
            "some",
            (
                Knob("tile", Family.TILE_SIZES, ((1, 33), (3, 11), (11, 3), (33, 1))),
                Knob("unroll", Family.UNROLLING, (1, 16, 64, 512)),
                Knob("order", Family.LOOP_ORDER, ("ij", "ji")),
            ),
            (Constraint("unrolls too much", ("tile", "unroll"), lambda tile, unroll: tile[1] * unroll <= 704),),
        ),
    )
)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"tile": (4, 8), "unroll": 64, "order": "ji"}, ((3, 11), 64, "ji")),
        ({"tile": (2, 32), "unroll": 512, "order": "ij"}, ((1, 33), 16, "ij")),
        ({"tile": (64, 1), "unroll": 512}, ((33, 1), 512, "ij")),
        ({}, ((1, 33), 1, "ij")),
    ],
)
def test_the_nearest_schedule_is_found(wanted, found):
    assert tuple(nearest(SPACE, "some", wanted).knobs.values()) == found


def test_values_of_different_kinds_are_a_step_apart():
    assert distance(8, 8) == 0
    assert distance(8, 64) == 3
    assert distance((8, 1), (2, 1)) == 2
    assert distance("ij", "ji") == distance((1, 2), (1, 2, 3)) == distance(True, 1) == 1
