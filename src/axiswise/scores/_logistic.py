"""The logistic regression that scores share, with every setting named."""

import warnings
from typing import TYPE_CHECKING

import numpy as np  # noqa: F401 (the example uses it)
from numpy import ndarray

from axiswise.shapes import Float, Int

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

SETTINGS = {"solver": "lbfgs", "C": 1.0, "tol": 1e-4, "max_iter": 10_000}
"""Those of the reference implementation under scikit-learn from 0.22 on, but with steps enough to converge."""

NAMED = "LogisticRegression(" + ", ".join(f"{name}={value}" for name, value in SETTINGS.items()) + ")"


def logistic_regression(features: Float[ndarray, "n d"], labels: Int[ndarray, " n"]) -> "LogisticRegression":
    """Fits a logistic regression, multinomial where there are more than two classes; there must be at least two.

    Example:
        >>> fitted = logistic_regression(np.array([[-1.0], [-2.0], [1.0], [2.0]]), np.array([3, 3, 7, 7]))
        >>> fitted.predict(np.array([[5.0]])).tolist()
        [7]
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        # The line search may stall in rounding just before the tolerance is met, which changes nothing that counts.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Levels are what they are, however many.
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        return LogisticRegression(**SETTINGS).fit(features, labels)
