"""The studies in experiments/noise hold what the README says, on a part of the recorded times."""

from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "experiments" / "noise"


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))


def test_races_err_no_oftener_than_stated():
    import races
    from recorded import repeats

    rng = np.random.default_rng(1)
    raw = repeats()
    draws = [races.from_repeats(row, rng) for row in raw[rng.choice(len(raw), 60, replace=False)]]
    found = races.study(draws, rng)
    assert found["against_itself"]["default_lost"] <= 0.05
    assert found["against_5_of_itself"]["default_lost"] <= 0.05
    assert found["against_2_percent_slower"]["default_lost"] == 0.0
    assert found["against_2_percent_faster"]["default_lost"] >= 0.95


def test_early_stopping_saves_time_and_keeps_the_fastest():
    import early_stopping
    from recorded import repeats

    raw = repeats()

    def own(chosen, rng):
        starts = rng.integers(1, 25, size=len(chosen))
        return raw[chosen[:, None], starts[:, None] + np.arange(7)]

    found = early_stopping.study(np.median(raw, axis=1), own, 40)
    assert found["statistical"]["fastest_dropped"] <= 0.01
    assert found["statistical"]["device_time_saved"] > found["three_times"]["device_time_saved"] > 0.3
