"""The limit follows the noise, and the truly fastest is dropped no oftener than stated."""

from statistics import median

import numpy as np
import pytest

from autotune.early_stop import CAREFUL, DRIFT, EarlyStop


def test_little_known_noise_drops_only_what_is_far_slower():
    stop = EarlyStop(0.01)
    stop.observe([1.0] * 7)
    assert stop.limit(2.0) == 2.0 * CAREFUL


def test_a_quiet_device_drops_what_is_a_little_slower():
    stop = EarlyStop(0.01)
    for _ in range(40):
        stop.observe([1.0, 1.001, 0.999, 1.0, 1.0, 1.002, 1.0])
    assert stop.factor == DRIFT


def test_a_rate_of_nothing_drops_nothing():
    stop = EarlyStop(0.0)
    for _ in range(100):
        stop.observe([1.0] * 7)
    assert stop.limit(1.0) == float("inf")


NOISES = {
    "even": lambda rng: np.exp(rng.normal(0, 0.05, 7)),
    "outliers": lambda rng: 1 + 0.05 * np.abs(rng.standard_t(2, 7)),
    "one-sided": lambda rng: 1 + 0.1 * rng.exponential(1, 7),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_the_best_is_dropped_no_oftener_than_stated_even_among_equals(noise):
    dropped = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        stop, best, chosen = EarlyStop(0.01), float("inf"), rng.integers(60, 120)
        for candidate in range(120):
            samples = noise(rng).tolist()
            if min(samples[:2]) > stop.limit(best):
                dropped += candidate == chosen
                continue
            stop.observe(samples)
            best = min(best, median(samples))
    assert dropped <= 200 * 0.01 + 4, "and two standard deviations of that"
