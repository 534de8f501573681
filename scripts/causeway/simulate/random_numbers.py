"""Random numbers of a simulated run: one stream per purpose, so that a change in one part of a scenario leaves the
others alone.
"""

import zlib

import numpy as np

TAIL_LIMIT = 8.0
"""Largest factor that a heavy tail may reach: a launch eight times its usual length is rare, one of a thousand times
breaks a schedule.
"""


def generator(seed: int, *purpose: object) -> np.random.Generator:
    """Return the generator of one purpose, e.g. `generator(seed, "copies", batch)`.

    The purpose is hashed with CRC-32, so that the stream does not depend on the order in which parts of the model are
    computed.
    """
    return np.random.Generator(np.random.PCG64([seed, zlib.crc32(repr(purpose).encode())]))


def standard_normal(
    random: np.random.Generator, shape: tuple[int, ...], rho: float, state: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw standard normals that follow a first-order autoregression along the last axis.

    Parameters
    ----------
    random : Generator
    shape : tuple of int, (n_series, n_steps)
    rho : float, 0 <= rho < 1
        Lag-1 autocorrelation; 0 gives independent values.
    state : ndarray of float64, shape (n_series,), or None
        The last values of the preceding batch; None starts from the stationary distribution.

    Returns
    -------
    values : ndarray of float64, shape (n_series, n_steps)
    state : ndarray of float64, shape (n_series,)
        For the next batch.
    """
    values = random.standard_normal(shape)
    if rho == 0 or shape[1] == 0:
        return values, np.zeros(shape[0])
    previous = random.standard_normal(shape[0]) if state is None else state
    innovation = np.sqrt(1 - rho * rho)
    for step in range(shape[1]):
        previous = values[:, step] = rho * previous + innovation * values[:, step]
    return values, previous


def factors(normal: np.ndarray, cv: np.ndarray | float) -> np.ndarray:
    """Turn standard normals into log-normal factors of mean 1 and coefficient of variation `cv`.

    sigma^2 = ln(1 + cv^2), mu = -sigma^2 / 2 (Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1,
    eq. 14.8).

    Parameters
    ----------
    normal : ndarray of float64, any shape
    cv : ndarray of float64 or float
        Fits the shape of `normal` by broadcasting; not negative.

    Returns
    -------
    ndarray of float64, of the shape of `normal`, above 0
    """
    variance = np.log1p(np.square(cv))
    return np.exp(np.sqrt(variance) * normal - variance / 2)


def spikes(random: np.random.Generator, shape: tuple[int, ...], share: float, size: float) -> np.ndarray:
    """Draw rare additions to a factor: `share` of the launches get an exponential of mean `size`, the rest 0.

    Returns
    -------
    ndarray of float64, shape `shape`, 0 to `TAIL_LIMIT`
    """
    if share == 0:
        return np.zeros(shape)
    return np.where(random.random(shape) < share, np.minimum(random.exponential(size, shape), TAIL_LIMIT), 0.0)
