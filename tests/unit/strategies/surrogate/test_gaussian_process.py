"""The Gaussian process: its gradient, its priors, and what it makes of data."""

import math
import tracemalloc

import numpy as np
import pytest

from autotune.strategies.surrogate.gaussian_process import FigureKernel, FigureModel, Layout, Prior

LAYOUT = Layout((0, 1, 1, 1), 2)
"""One ordered knob, one with three names; the fifth column is linear."""


@pytest.fixture
def inputs() -> np.ndarray:
    rng = np.random.default_rng(1)
    names = np.eye(3)[rng.integers(0, 3, 12)] / math.sqrt(2)
    return np.column_stack([rng.random(12), names, np.full(12, 0.5)])


def test_the_gradient_of_the_kernel_is_its_slope(inputs: np.ndarray) -> None:
    kernel = FigureKernel(np.array([0.04, 0.02, 0.01, 0.7, 1.3]), LAYOUT)
    _, gradient = kernel(inputs, eval_gradient=True)
    for number in range(5):
        step = np.zeros(5)
        step[number] = 1e-6
        up = kernel.clone_with_theta(kernel.theta + step)(inputs)
        down = kernel.clone_with_theta(kernel.theta - step)(inputs)
        assert gradient[:, :, number] == pytest.approx((up - down) / 2e-6, abs=1e-6)


def test_the_diagonal_is_the_variance_without_noise(inputs: np.ndarray) -> None:
    kernel = FigureKernel(np.array([0.04, 0.02, 0.01, 0.7, 1.3]), LAYOUT)
    assert kernel.diag(inputs) == pytest.approx(np.diag(kernel(inputs, inputs)))


def test_a_model_follows_its_data_and_is_unsure_away_from_them(inputs: np.ndarray) -> None:
    centre = np.log([0.04, 0.02, 0.0025, 0.8, 1.5])
    prior = Prior(centre, np.array([1.0, 1.0, 1.0, 0.8, 0.7]))
    model = FigureModel(FigureKernel(np.exp(centre), LAYOUT), np.full(12, 1e-4), prior)
    values = np.sin(3 * inputs[:, 0]) + inputs[:, 1]
    model.learn(inputs, values)
    mean, variance = model.posterior(inputs)
    assert mean == pytest.approx(values, abs=0.15)
    far = inputs[:1] + np.array([[3.0, 0, 0, 0, 0]])
    assert model.posterior(far)[1][0] > 4 * variance.max()
    joint = model.covariance(inputs, inputs)
    assert np.diag(joint) == pytest.approx(variance, abs=1e-9)


def test_a_thousand_settings_at_once_take_little_memory() -> None:
    """As whether each of ten changes is needed is asked: one matrix of them is 8 MiB."""
    layout = Layout(groups=tuple(range(14)), knobs=14)
    kernel = FigureKernel(np.full(17, 0.5), layout)
    x = np.random.default_rng(0).random((1024, 20))
    tracemalloc.start()
    try:
        kernel(x, x)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 16 * 8 * 2**20
