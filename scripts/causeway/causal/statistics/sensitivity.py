"""Robustness to unmeasured common causes."""

import numpy as np


def robustness_value(partial_r2: float) -> float:
    """Return the share of the residual variance of both cause and target that a hidden common cause must explain to
    undo the effect, 0 to 1.

    `RV = (sqrt(f^4 + 4 f^2) - f^2) / 2` with `f^2 = R^2 / (1 - R^2)`.

    References
    ----------
    C. Cinelli, C. Hazlett, Making sense of sensitivity, J. R. Stat. Soc. B 82 (2020) 39, equation 9 with q = 1.
    """
    if partial_r2 >= 1:
        return 1.0
    f2 = max(partial_r2, 0.0) / (1 - max(partial_r2, 0.0))
    return float((np.sqrt(f2**2 + 4 * f2) - f2) / 2)
