"""Kernel Tuner's own code in its simulation mode; needs the extra `rivals`."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from autotune.comparison.replay import noisy_seconds
from autotune.comparison.rivals.base import rival_of
from autotune.measurement import Status
from search_spaces.errors import UnknownName
from search_spaces.listed import ListedSpace
from search_spaces.schedule import SKETCH, Schedule

pytest.importorskip("kernel_tuner")


@pytest.fixture
def search(recording):
    def run(name, seed=0, trials=40):
        rival, strategy = rival_of(f"kernel-tuner:{name}")
        return rival.search(recording, strategy, seed, trials, noisy_seconds(recording, seed))

    return run


@pytest.mark.parametrize("name", ["random_sample", "genetic_algorithm", "adaptive_tabu_greywolf"])
def test_its_search_is_a_trace_as_any(search, recording, name):
    trace = search(name)
    assert not trace.error
    assert trace.strategy == f"kernel-tuner:{name}"
    assert 20 <= len(set(trace.places)) == len(trace.places) <= 40
    noise = noisy_seconds(recording, 0)
    assert [math.inf if t is None else t for t in trace.observed] == noise[list(trace.places)].tolist()
    assert search(name).places == trace.places
    assert search(name, seed=1).places != trace.places


def test_a_space_of_several_sketches_is_one_more_parameter(recording):
    half = [Schedule(((SKETCH, "other"), *s.items[1:3])) for s in recording.space.schedules if s["warps"] == 1]
    count = len(half)
    both = replace(
        recording,
        space=ListedSpace.of([*recording.space.schedules, *half]),
        seconds=np.concatenate([recording.seconds, np.linspace(2e-3, 3e-3, count)]),
        deviation=np.concatenate([recording.deviation, np.zeros(count)]),
        cost=np.concatenate([recording.cost, np.ones(count)]),
        status=(*recording.status, *(Status.OK,) * count),
    )
    rival, name = rival_of("kernel-tuner:random_sample")
    trace = rival.search(both, name, 0, 80, noisy_seconds(both, 0))
    assert not trace.error
    assert {both.space.schedules[p].sketch for p in trace.places} == {"bowl", "other"}


def test_failures_are_legal_and_cost_a_measurement(search, recording):
    assert any(t is None for t in search("random_sample", trials=len(recording.seconds)).observed)


def test_options_follow_the_name(search):
    plain, small = search("genetic_algorithm"), search("genetic_algorithm:popsize=4:method=single_point")
    assert not small.error
    assert small.strategy == "kernel-tuner:genetic_algorithm:popsize=4:method=single_point"
    assert small.places != plain.places
    assert "Unrecognized option" in search("genetic_algorithm:pop=4").error


def test_it_leaves_the_global_generators_alone(search):
    random.seed(5)
    np.random.seed(5)
    expected = random.random(), np.random.random()
    random.seed(5)
    np.random.seed(5)
    search("random_sample")
    assert (random.random(), np.random.random()) == expected


def test_an_unknown_strategy_is_the_users_mistake():
    with pytest.raises(UnknownName, match="did you mean 'pso'"):
        rival_of("kernel-tuner:psos")


def test_other_names_are_no_rivals():
    assert rival_of("random") is None
    assert rival_of("my/file.py:Mine") is None
