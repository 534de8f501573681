"""The builtin `sum` adds floats differently from Python 3.12 on (compensated), so that a result would depend on the
version of Python. The package adds floats with `math.fsum`, which is exact and knows no order; its tests run with a
`sum` that refuses them.
"""

import builtins
import sys

import numpy as np

PLAIN_SUM = builtins.sum
PACKAGE = "causeway."


class FloatSumError(AssertionError):
    """A module of the package has added floats with the builtin `sum`."""


def checked_sum(values, /, start=0):
    """Add as the builtin does; raise `FloatSumError` where a module of the package adds floats."""
    module = sys._getframe(1).f_globals.get("__name__", "")
    if not module.startswith(PACKAGE):
        return PLAIN_SUM(values, start)
    values = list(values)
    if any(isinstance(value, (float, np.floating)) for value in values):
        raise FloatSumError(f"{module} adds floats with `sum`: use `math.fsum`, which is the same in each Python")
    return PLAIN_SUM(values, start)
