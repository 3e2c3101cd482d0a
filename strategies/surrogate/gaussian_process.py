"""A Gaussian process whose hyperparameters have priors.

scikit-optimize's regressor does the algebra. Plain maximum likelihood is badly overconfident at
few points, so log-priors are added to its likelihood.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process.kernels import Hyperparameter
from skopt.learning import GaussianProcessRegressor
from skopt.learning.gaussian_process.kernels import Kernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layout:
    """What the columns of an input are.

    The first `len(groups)` place the setting: `groups[c]` is the number of the knob that column
    `c` belongs to (a named knob has several, which share one length-scale). The rest are linear
    terms, already multiplied by the spread of their coefficients.
    """

    groups: tuple[int, ...]
    knobs: int


class FigureKernel(Kernel):  # type: ignore[misc]  # skopt is untyped
    """What each knob does by itself, what they do together, linear terms, and noise.

    The first part is a sum of one Matérn 5/2 a knob, so that what one knob does is learnt from
    trials that differ in the others too; the second is one Matérn 5/2 of them all.
    `scales` = (amplitude² alone, amplitude² together, noise variance, length-scales…).
    """

    def __init__(self, scales: Array, layout: Layout) -> None:
        self.scales = scales
        self.layout = layout

    @property
    def hyperparameter_scales(self) -> Hyperparameter:
        return Hyperparameter("scales", "numeric", (1e-6, 1e3), len(self.scales))

    def is_stationary(self) -> bool:
        return False

    def diag(self, x: Array) -> Array:
        linear = x[:, len(self.layout.groups) :]
        own = self.scales[0] * self.layout.knobs + self.scales[1]
        return np.asarray(own + np.sum(linear**2, axis=1), dtype=float)

    def __call__(self, x: Array, y: Array | None = None, eval_gradient: bool = False) -> Any:
        """The covariance of the rows of x (n, c) with those of y (m, c), or with themselves and
        the noise if y is None; with the gradient by the logs of `scales` (n, n, 3 + knobs)."""
        if eval_gradient:
            assert y is None
            return self._with_gradient(x)
        alone, together, noise = self.scales[:3]
        other = x if y is None else y
        singles, apart = np.zeros((2, len(x), len(other)))
        # One after the other, since there may be a thousand rows on both sides.
        for by_knob in self._apart(x, other):
            apart += by_knob
            singles += _matern(by_knob)[0]
        width = len(self.layout.groups)
        linear = x[:, width:] @ other[:, width:].T
        covariance = alone * singles + together * _matern(apart)[0] + linear
        if y is None:
            covariance[np.diag_indices_from(covariance)] += noise
        return covariance

    def _with_gradient(self, x: Array) -> tuple[Array, Array]:
        alone, together, noise = self.scales[:3]
        apart = np.zeros((self.layout.knobs, len(x), len(x)))
        for knob, by_knob in enumerate(self._apart(x, x)):
            apart[knob] = by_knob
        singles, by_single = _matern(apart)
        whole, by_whole = _matern(apart.sum(axis=0))
        width = len(self.layout.groups)
        parts = [alone * singles.sum(axis=0), together * whole, noise * np.eye(len(x))]
        covariance = parts[0] + parts[1] + x[:, width:] @ x[:, width:].T + parts[2]
        by_length = apart * (alone * by_single + together * by_whole)
        return covariance, np.stack([*parts, *by_length], axis=-1)

    def _apart(self, x: Array, y: Array) -> Iterator[Array]:
        """The squared distances (n, m) by each knob, in length-scales."""
        groups = np.array(self.layout.groups)
        for knob in range(self.layout.knobs):
            apart = np.zeros((len(x), len(y)))
            for column in np.flatnonzero(groups == knob):
                apart += (x[:, column][:, None] - y[:, column][None, :]) ** 2
            yield apart / self.scales[3 + knob] ** 2


def _matern(apart: Array) -> tuple[Array, Array]:
    """Matérn 5/2 at these squared distances, and its gradient by the log of a length-scale for
    each part of them."""
    root = np.sqrt(5.0 * apart)
    decay = np.exp(-root)
    return decay * (1.0 + root + root**2 / 3.0), 5.0 / 3.0 * decay * (1.0 + root)


@dataclass(frozen=True)
class Prior:
    """Log-normal beliefs on a kernel's `scales`: centres of the log, and their spreads."""

    centre: Array
    spread: Array


class FigureModel(GaussianProcessRegressor):  # type: ignore[misc]  # skopt is untyped
    """The regressor with priors; `alpha` is the known noise variance of each observation."""

    def __init__(self, kernel: Any = None, alpha: Any = 1e-10, prior: Prior | None = None) -> None:
        super().__init__(kernel=kernel, alpha=alpha, normalize_y=False)
        self.prior = prior

    def log_marginal_likelihood(
        self, theta: Array | None = None, eval_gradient: bool = False, clone_kernel: bool = True
    ) -> Any:
        found = super().log_marginal_likelihood(theta, eval_gradient, clone_kernel)
        if theta is None or self.prior is None:
            return found
        off = (theta - self.prior.centre) / self.prior.spread
        penalty = 0.5 * float(off @ off)
        if not eval_gradient:
            return found - penalty
        return found[0] - penalty, found[1] - off / self.prior.spread

    def learn(self, x: Array, y: Array) -> "FigureModel":
        """Fit to y (n,) at x (n, c). Not converging in full is no error: the priors keep what
        was found sensible."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.fit(x, y)
        return self

    def posterior(self, x: Array) -> tuple[Array, Array]:
        """The mean (n,) and variance (n,) of the figure's true value at x, without noise."""
        cross = self.kernel_(x, self.X_train_)
        mean = cross @ self.alpha_
        half = solve_triangular(self.L_, cross.T, lower=True)
        variance = self.kernel_.diag(x) - np.sum(half**2, axis=0)
        return mean, np.maximum(variance, 1e-12)

    def beside(self, x: Array, baseline: Array) -> tuple[Array, Array]:
        """Mean and variance (n,) of the true values at x, less that at the `baseline` (1, c)."""
        both = np.vstack([x, baseline])
        cross = self.kernel_(both, self.X_train_)
        mean = cross @ self.alpha_
        half = solve_triangular(self.L_, cross.T, lower=True)
        variance = self.kernel_.diag(both) - np.sum(half**2, axis=0)
        shared = self.kernel_(x, baseline)[:, 0] - half[:, :-1].T @ half[:, -1]
        apart = variance[:-1] + variance[-1] - 2.0 * shared
        return mean[:-1] - mean[-1], np.maximum(apart, 1e-12)

    def covariance(self, x: Array, y: Array) -> Array:
        """The posterior covariance (n, m) of the true values at x and at y."""
        left = solve_triangular(self.L_, self.kernel_(x, self.X_train_).T, lower=True)
        right = solve_triangular(self.L_, self.kernel_(y, self.X_train_).T, lower=True)
        return np.asarray(self.kernel_(x, y) - left.T @ right, dtype=float)
