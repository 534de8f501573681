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


def e_value(effect: float, error: float = 0.0) -> float:
    """Return how strongly, as a risk ratio, a hidden cause must be tied to both cause and target to move the interval's
    near end to zero.

    Parameters
    ----------
    effect : float
        Standard deviations of the target per standard deviation of the cause.
    error : float
        Its standard error; 0 for the E-value of the estimate itself.

    Returns
    -------
    float
        At least 1.

    References
    ----------
    T. VanderWeele, P. Ding, Sensitivity analysis in observational research: introducing the E-value, Ann. Intern. Med.
    167 (2017) 268, table 2: `RR = exp(.91 d)`, its limit `exp(.91 d - 1.78 s)`, `E = RR + sqrt(RR (RR - 1))`.
    """
    ratio = float(np.exp(0.91 * abs(effect) - 1.78 * error))
    return ratio + float(np.sqrt(ratio * (ratio - 1))) if ratio > 1 else 1.0
