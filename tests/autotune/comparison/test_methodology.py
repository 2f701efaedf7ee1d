"""Willemsen's own package beside this one, where it is installed: same budget, same score but for his rounding."""

import json

import numpy as np
import pytest

from autotune.comparison.baseline import own_budget
from autotune.comparison.score import Yardstick
from autotune.measurement import Status
from autotune.recordings.recording import Recording
from search_spaces.listed import ListedSpace
from search_spaces.schedule import SKETCH, Schedule

statistics = pytest.importorskip("autotuning_methodology.searchspace_statistics")
COSTS = ("compilation", "runtimes", "framework", "search_algorithm", "validation")


@pytest.fixture
def theirs(tmp_path):
    """The package's view of a recording's valid schedules, by way of a T4 file."""

    def read(seconds):
        results = [
            {
                "configuration": {"place": place},
                "times": {**dict.fromkeys(COSTS, 0.2), "runtimes": [0.2]},
                "invalidity": "correct",
                "correctness": 1,
                "measurements": [{"name": "time", "value": float(value), "unit": "seconds"}],
                "objectives": ["time"],
            }
            for place, value in enumerate(seconds)
        ]
        path = tmp_path / "space_T4.json"
        path.write_text(json.dumps({"schema_version": "1.0.0", "metadata": {}, "results": results}))
        return statistics.SearchspaceStatistics("bowl", "board", True, list(COSTS), ["time"], path, False)

    return read


def even(count=2000):
    """Times a step apart, of which the value of the expected rank is the expected value."""
    return np.random.default_rng(0).permutation(np.linspace(1e-3, 2e-3, count))


@pytest.mark.parametrize("share", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.filterwarnings("ignore:Scaled down cutoff point")
def test_the_own_budget_is_the_packages(theirs, recording, share):
    for seconds in (even(), recording.seconds):
        valid = seconds[np.isfinite(seconds)]
        assert own_budget(seconds, share) == theirs(valid).cutoff_point(share)[1]


def test_baseline_and_score_differ_by_its_rounding_alone(theirs):
    baselines = pytest.importorskip("autotuning_methodology.baseline")
    seconds, measurements = even(), np.arange(1, 101)
    step = 1e-3 / (len(seconds) - 1)
    package = baselines.RandomSearchCalculatedBaseline(theirs(seconds))
    random = package.get_curve_over_fevals(measurements)
    yardstick = Yardstick.of(recorded(seconds), [seconds], 100)
    assert np.abs(yardstick.baseline - random).max() < 1.6 * step
    for curve in (0.5 * (random + 1e-3), np.linspace(2e-3, 1e-3, 100)):
        score = package.get_standardised_curve(measurements, curve, "fevals").mean()
        # The last baselines are twenty steps from the optimum.
        assert yardstick.score(curve) == pytest.approx(score, rel=0.08, abs=0.03)


def recorded(seconds):
    count = len(seconds)
    return Recording(
        name="even__board",
        kernel="even",
        device="board",
        space=ListedSpace.of([Schedule(((SKETCH, "even"), ("place", i))) for i in range(count)]),
        seconds=seconds,
        deviation=np.zeros(count),
        cost=np.ones(count),
        status=(Status.OK,) * count,
    )
