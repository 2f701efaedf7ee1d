from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import norm

from cost_models.gaussian import Kernel, Posterior, _unlikelihood, fitted_kernel

KERNEL = Kernel(np.array([0.4, 2.0]), 1.3, 0.01)


@pytest.fixture
def rows():
    return np.random.default_rng(0).random((12, 2))


@pytest.fixture
def targets(rows):
    values = np.sin(6 * rows[:, 0]) + 0.1 * rows[:, 1]
    return (values - values.mean()) / values.std()


def exact(kernel, rows, targets, others):
    """Mean and variance as in the book, by inverting the whole matrix."""
    inverse = np.linalg.inv(kernel(rows, rows) + kernel.noise * np.eye(len(rows)))
    across = kernel(others, rows)
    return across @ inverse @ targets, kernel.height - np.einsum("ij,jk,ik->i", across, inverse, across)


def test_the_gradient_is_that_of_the_likelihood(rows, targets):
    squares = (rows.T[:, :, None] - rows.T[:, None, :]) ** 2
    logs = np.array([-0.5, 0.3, 0.2, -3.0])
    apart = check_grad(
        lambda x: _unlikelihood(x, squares, targets)[0], lambda x: _unlikelihood(x, squares, targets)[1], logs
    )
    assert apart < 1e-3


def test_a_fit_finds_which_column_matters(rows, targets):
    kernel = fitted_kernel(rows, targets, 30)
    assert kernel.lengths[0] < 0.5 * kernel.lengths[1]
    assert kernel.noise < 0.1


def test_mean_and_improvement_are_those_of_the_book(rows, targets):
    others = np.random.default_rng(1).random((20, 2))
    mean, variance = exact(KERNEL, rows, targets, others)
    posterior = Posterior(KERNEL, rows, targets)
    np.testing.assert_allclose(posterior.mean(others), mean, atol=1e-9)
    deviation = np.sqrt(variance)
    z = (targets.min() - mean) / deviation
    expected = deviation * (z * norm.cdf(z) + norm.pdf(z))
    np.testing.assert_allclose(posterior.short_list(others, 20)[1].improvement(), expected, atol=1e-9)


def test_believing_is_measuring_the_mean(rows, targets):
    others = np.random.default_rng(1).random((20, 2))
    posterior = Posterior(KERNEL, rows, targets)
    candidates = posterior.short_list(others, 20)[1]
    pending = others[[3, 7, 11]]
    for row in pending:
        candidates.believe(row, posterior.whitened(row[None])[0])
    more = np.vstack([rows, pending]), np.concatenate([targets, posterior.mean(pending)])
    again = Posterior(KERNEL, *more)
    again.best = posterior.best
    np.testing.assert_allclose(candidates.improvement(), again.short_list(others, 20)[1].improvement(), atol=1e-9)


def test_what_is_believed_is_not_wanted_twice(rows, targets):
    others = np.random.default_rng(1).random((20, 2))
    posterior = Posterior(replace(KERNEL, noise=1e-4), rows, targets)
    candidates = posterior.short_list(others, 20)[1]
    before = candidates.improvement()
    best = int(before.argmax())
    candidates.believe(others[best], posterior.whitened(others[[best]])[0])
    assert candidates.improvement()[best] < 0.7 * before[best]


def test_equal_rows_do_no_harm():
    rows = np.full((9, 2), 0.5)
    targets = np.array([1.0, -1.0, 0.5] * 3)
    kernel = fitted_kernel(rows, targets, 30)
    assert np.isfinite(Posterior(kernel, rows, targets).short_list(rows, 9)[1].improvement()).all()


def test_the_short_list_has_the_best_means(rows, targets):
    others = np.random.default_rng(1).random((20, 2))
    posterior = Posterior(KERNEL, rows, targets)
    listed, candidates = posterior.short_list(others, 5)
    assert listed.tolist() == sorted(np.argsort(posterior.mean(others))[:5].tolist())
    np.testing.assert_allclose(
        candidates.improvement(), posterior.short_list(others, 20)[1].improvement()[listed], atol=1e-12
    )
