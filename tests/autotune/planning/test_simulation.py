"""The simulated search neither does work twice nor faster than its crew can, and shows where it bends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.planning.costs import TrialCosts
from autotune.planning.fleet import Workload, fleet_time
from autotune.planning.overheads import Overheads
from autotune.planning.simulation import Crew, simulated

NONE = Overheads(0.0, 0.0, 0.0, 0.0)
_SECONDS = st.floats(0.0, 10.0)


def costs(build, device):
    return TrialCosts("made", np.array(build, float), np.array(device, float))


def taken(made, trials, crew, overheads=NONE, seed=0, waves=False):
    return simulated(made, trials, crew, overheads, np.random.default_rng(seed), waves=waves)


@given(
    st.lists(st.tuples(_SECONDS, _SECONDS), min_size=1, max_size=20),
    st.integers(1, 60),
    st.builds(Crew, st.integers(1, 9), st.integers(1, 9)),
    st.builds(Overheads, _SECONDS, _SECONDS, _SECONDS, _SECONDS),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_it_is_no_faster_than_its_parts_and_no_slower_than_one_after_the_other(pairs, trials, crew, overheads, waves):
    found = taken(costs(*zip(*pairs, strict=True)), trials, crew, overheads, waves=waves)
    parts = (found.build / crew.builders, found.device / crew.devices, found.proposing, found.slowest)
    slack = 1e-6 * found.seconds + 1e-9
    assert found.seconds >= found.alone + max(parts) - slack
    thought, written = trials * overheads.suggest, trials * overheads.record
    assert found.seconds <= found.alone + found.build + found.device + thought + written + slack
    assert found.alone == overheads.start + overheads.final
    assert found.proposing == pytest.approx(thought + written if waves else max(thought, written))


def test_devices_go_on_while_the_strategy_thinks():
    made, overheads = costs([0.0], [1.0]), Overheads(0.0, 0.9, 0.0, 0.0)
    assert taken(made, 100, Crew(1, 1), overheads).seconds < 110.0


def test_one_builder_and_one_device_are_a_pipeline():
    found = taken(costs([2.0], [1.0]), 10, Crew(1, 1))
    assert found.seconds == pytest.approx(10 * 2.0 + 1.0), "the last one is measured after the last build"


def test_twice_the_builders_halve_what_waits_for_builds():
    made = costs([4.0], [0.1])
    one, two = (taken(made, 512, Crew(1, n)).seconds for n in (8, 16))
    assert one / two == pytest.approx(2.0, rel=0.05)


def test_twice_the_devices_halve_what_waits_for_devices_until_the_strategy_is_what_is_waited_for():
    made, overheads = costs([0.0], [1.0]), Overheads(0.0, 0.01, 0.0, 0.0)
    seconds = {n: taken(made, 2000, Crew(n, 16), overheads).seconds for n in (1, 2, 512)}
    assert seconds[1] / seconds[2] == pytest.approx(2.0, rel=0.02)
    assert seconds[512] >= 2000 * 0.01


def test_in_waves_builds_and_measurements_take_turns():
    found = taken(costs([2.0], [1.0]), 8, Crew(1, 4), waves=True)
    assert found.seconds == pytest.approx(2 * (2.0 + 4 * 1.0))


def test_what_fails_to_build_takes_no_device():
    assert taken(costs([1.0], [0.0]), 20, Crew(1, 4)).device == 0.0


@pytest.mark.parametrize("crew", [(0, 1), (1, 0)])
def test_no_crew_is_refused(crew):
    with pytest.raises(ValueError, match="a search needs"):
        Crew(*crew)


def fleet(devices, count=4, overheads=NONE, **more):
    works = [Workload(str(i), costs([1.0], [0.5]), 64, waves=False) for i in range(count)]
    return fleet_time(works, devices, 4, overheads, 0, **more)


def test_searches_on_devices_of_their_own_scale_until_each_has_one():
    times = {n: fleet(n) for n in (1, 2, 4)}
    assert times[1].seconds / times[4].seconds == pytest.approx(4.0, rel=1e-9)
    assert times[2].seconds / times[4].seconds == pytest.approx(2.0, rel=1e-9)
    assert [times[n].searches for n in (1, 2, 4)] == [1, 2, 4]
    assert times[4].idle == pytest.approx(0.0)


def test_beyond_that_devices_are_shared_out():
    assert fleet(4).seconds > fleet(8).seconds > fleet(64).seconds


def test_what_binds_is_told():
    assert fleet(4).binds == "devices"
    assert fleet(4, overheads=Overheads(1e3, 0.0, 0.0, 1e3)).binds == "starts and final races"
    assert fleet(64, overheads=Overheads(0.0, 1.0, 0.0, 0.0)).binds == "the strategy"
    assert fleet(3).binds == "devices"
    assert fleet(3).idle > 0.3
    assert fleet(1000).binds == "the slowest candidates"
    longest = [Workload(str(i), costs([1.0 + 99.0 * (i == 0)], [0.5]), 64, waves=False) for i in range(4)]
    assert fleet_time(longest, 4, 4, NONE, 0).binds == "the longest search"


def test_together_one_search_follows_the_other():
    overheads = Overheads(10.0, 0.0, 0.0, 5.0)
    together, apart = fleet(8, overheads=overheads, together=True), fleet(8, overheads=overheads)
    assert together.searches == 1
    assert together.seconds > 4 * 15.0
    assert apart.seconds < together.seconds


def test_the_same_seed_gives_the_same_plan():
    assert fleet(7) == fleet(7)
