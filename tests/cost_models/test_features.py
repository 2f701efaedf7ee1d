import math
import subprocess
import sys

import numpy as np
import pytest

from cost_models.features import Features
from search_spaces.hardware import cuda_hardware
from search_spaces.space import SKETCH, Family, Knob, Schedule, ScheduleSpace, SketchSpace
from search_spaces.target import Target
from search_spaces.task import Task, find_operator

WARPS = Knob("warps", Family.WARPS, (1, 2, 4))
SPACE = ScheduleSpace(
    (
        SketchSpace(
            "tiled",
            (
                Knob("tile", Family.TILE_SIZES, ((1, 8, 2), (4, 2, 2))),
                WARPS,
                Knob("order", Family.LOOP_ORDER, ("row", "column")),
                Knob("deep", Family.PERSISTENCE, (False, True)),
            ),
        ),
        SketchSpace("plain", (WARPS, Knob("layout", Family.SHARED_MEMORY, tuple("abcdefghij")))),
    )
)
TILED = Schedule(((SKETCH, "tiled"), ("tile", (1, 8, 2)), ("warps", 4), ("order", "column"), ("deep", True)))
PLAIN = Schedule(((SKETCH, "plain"), ("warps", 2), ("layout", "c")))


def row(features, schedule):
    return dict(zip(features.columns, features([schedule])[0].tolist(), strict=True))


def test_every_kind_of_knob_is_encoded():
    got = row(Features(SPACE), TILED)
    assert got.pop("layout#") != got
    assert {k: v for k, v in got.items() if not math.isnan(v)} == {
        "sketch=tiled": 1, "sketch=plain": 0, "tile[0]": 0, "tile[1]": 3, "tile[2]": 1, "tile[1:]": 4,
        "warps": 2, "order=row": 0, "order=column": 1, "deep": 1,
    }  # fmt: skip


def test_a_knob_that_a_sketch_lacks_is_missing_and_one_that_it_shares_is_not():
    got = row(Features(SPACE), PLAIN)
    assert got["warps"] == 1
    assert got["layout#"] == 2
    assert math.isnan(got["order=row"])
    assert math.isnan(got["tile[1:]"])


def test_derived_numbers_are_columns():
    features = Features(
        SPACE, lambda s: {"threads": 32.0 * s.integer("warps")} | ({"depth": 7.0} if s.sketch == "tiled" else {})
    )
    assert features.columns[-2:] == ("derived threads", "derived depth")
    assert row(features, TILED)["derived threads"] == 128
    assert row(features, TILED)["derived depth"] == 7
    assert math.isnan(row(features, PLAIN)["derived depth"])


def test_columns_depend_on_the_space_alone():
    one, other = Features(SPACE), Features(SPACE)
    one([TILED]), other([PLAIN])
    assert one.columns == other.columns
    assert len(set(one.columns)) == len(one.columns)
    np.testing.assert_array_equal(one([PLAIN, TILED]), other([PLAIN, TILED]))
    assert one([]).shape == (0, len(one.columns))


def test_uneven_tuples_and_numbers_that_have_no_logarithm():
    knobs = (
        Knob("pad", Family.SHARED_MEMORY, (0, 8)),
        Knob("order", Family.LOOP_ORDER, ((0, 1), (1, 0))),
        Knob("tile", Family.TILE_SIZES, ((2, 2, 2), (8, 4))),
    )
    features = Features(ScheduleSpace((SketchSpace("a", knobs),)))
    got = row(features, Schedule(((SKETCH, "a"), ("pad", 8), ("order", (1, 0)), ("tile", (8, 4)))))
    assert got["pad"] == 8
    assert (got["order[0]"], got["order[1]"]) == (1, 0)
    assert (got["tile[0]"], got["tile[1]"]) == (3, 2)
    assert math.isnan(got["tile[2]"])


def test_the_features_of_a_real_task():
    workload = find_operator("matmul").workload(M=1024, N=1024, K=1024)
    task = Task("matmul", workload, Target("cuda", "sm_90"), cuda_hardware("sm_90"))
    if not task.sketches:
        pytest.skip("no sketch applies")
    features = Features.of_task(task)
    rng = np.random.default_rng(0)
    rows = features([task.space.sample(rng) for _ in range(50)])
    assert rows.shape == (50, len(features.columns))
    assert not np.isinf(rows).any()
    assert (~np.isnan(rows)).any(axis=1).all()


def test_importing_cost_models_stays_light():
    code = (
        "import sys, cost_models.model, cost_models.features, cost_models.ranking; assert 'xgboost' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
