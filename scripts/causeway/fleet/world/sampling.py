"""The agents' samples: consecutive launches once per user and day, from the first session that lasts long enough.

One report per user and day, whatever the user owns: neighbouring inputs then differ by one report. A user reports soon
after their first session of the day began, so each user's data enter one hourly window only.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from causeway.core.errors import CausewayError
from causeway.fleet.attribution.tokens import MIX
from causeway.fleet.draws import uniforms
from causeway.fleet.report_layout import WINDOW_S
from causeway.fleet.world.applications import SPEED, Suite
from causeway.fleet.world.sessions import DAY_S, Sessions

JITTER_S = 600.0
"""A report waits a random time up to this, so that its arrival does not reveal when a session began."""
TUNED = 0.01
"""Probability that a run's autotuning replaces a kernel by its variant."""
FOREIGN = 0.005
"""Probability that another program's launch replaces one."""
USER_SPREAD = 0.08
"""Standard deviation of the logarithm of a user's speed."""


@dataclass(frozen=True, kw_only=True)
class Reports:
    """The reports of a day: one row per user that was active, ordered by user.

    Attributes
    ----------
    user, gpu, application, generation : ndarray of int64, shape (n,)
    run : ndarray of uint64, shape (n,)
    sent_s : ndarray of float64, shape (n,)
        Time of sending, seconds since midnight.
    """

    user: np.ndarray
    gpu: np.ndarray
    application: np.ndarray
    generation: np.ndarray
    run: np.ndarray
    sent_s: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The measurements of the sampled windows, one row per report.

    Attributes
    ----------
    kernel : ndarray of int64, shape (n, launches)
    duration_ns : ndarray of int64, shape (n, launches)
    occupancy : ndarray of float64, shape (n, launches), 0 to 1
    busy : ndarray of float64, shape (n,)
        Share of the window in which the GPU worked.
    totals : ndarray of float64, shape (n, 3)
        GPU milliseconds, launches and MiB moved in the window.
    """

    kernel: np.ndarray
    duration_ns: np.ndarray
    occupancy: np.ndarray
    busy: np.ndarray
    totals: np.ndarray


def choose(sessions: Sessions, seed: int) -> Reports:
    """Choose each user's report of the day: the earliest session that lasts a whole window, whichever of the user's
    GPUs it runs on.

    Raises
    ------
    CausewayError
        If there is none, so that nobody reports.
    """
    long_enough = np.nonzero(
        (sessions.end_s - sessions.start_s >= WINDOW_S) & (sessions.start_s + WINDOW_S + JITTER_S < DAY_S)
    )[0]
    if not len(long_enough):
        raise CausewayError(
            f"fleet: none of the day's {len(sessions.gpu)} sessions lasts a minute, so that nobody reports; raise"
            " fleet/gpus, fleet/load or fleet/session_minutes"
        )
    order = long_enough[
        np.lexsort((sessions.gpu[long_enough], sessions.start_s[long_enough], sessions.user[long_enough]))
    ]
    users, first = np.unique(sessions.user[order], return_index=True)
    chosen = order[first]
    highest = int(users.max(initial=-1)) + 1
    wait = uniforms(seed, "jitter", 0, highest, 4)[users, 0] * JITTER_S
    columns = {name: getattr(sessions, name)[chosen] for name in ("gpu", "application", "generation", "run")}
    return Reports(user=users, **columns, sent_s=sessions.start_s[chosen] + WINDOW_S + wait)


def observe(suite: Suite, reports: Reports, rows: slice, launches: int, seed: int) -> Samples:
    """Return the samples of some reports: consecutive launches from a random position of an iteration.

    Parameters
    ----------
    suite : Suite
    reports : Reports
    rows : slice
        The reports.
    launches : int
        In each sample.
    seed : int
    """
    users = reports.user[rows]
    n = len(users)
    kernels = np.zeros((n, launches), np.int64)
    drawn = _by_user(seed, "sequence", users, launches + 4)
    for application in np.unique(reports.application[rows]).tolist():
        body = suite.applications[application].body
        of_application = np.nonzero(reports.application[rows] == application)[0]
        offset = (drawn[of_application, launches] * len(body)).astype(np.int64)
        kernels[of_application] = body[(offset[:, None] + np.arange(launches)) % len(body)]
    kernels = _as_tuned(suite, kernels, reports.run[rows])
    foreign = drawn[:, :launches] < FOREIGN
    kernels[foreign] = (drawn[:, :launches][foreign] / FOREIGN * len(suite.applications)).astype(np.int64)
    speed = np.array(SPEED)[reports.generation[rows]] * np.exp(USER_SPREAD * ndtri(drawn[:, launches + 1]))
    noise = ndtri(_by_user(seed, "durations", users, launches))
    duration = suite.median_ns[kernels] * np.exp(suite.spread[kernels] * noise) * speed[:, None]
    duration = np.maximum(np.rint(duration), 1).astype(np.int64)
    occupancy = np.clip(suite.occupancy[kernels] + 0.08 * ndtri(_by_user(seed, "occupancy", users, launches)), 0.0, 1.0)
    applications = [suite.applications[application] for application in reports.application[rows].tolist()]
    busy = np.clip(np.array([a.busy for a in applications]) + 0.06 * ndtri(drawn[:, launches + 2]), 0.01, 1.0)
    gpu_ms = busy * WINDOW_S * 1e3
    moved = np.array([a.mib_per_s for a in applications]) * WINDOW_S * np.exp(0.2 * ndtri(drawn[:, launches + 3]))
    totals = np.column_stack([gpu_ms, gpu_ms * 1e6 / duration.mean(1), moved])
    return Samples(kernel=kernels, duration_ns=duration, occupancy=occupancy, busy=busy, totals=totals)


def _by_user(seed: int, purpose: str, users: np.ndarray, per_user: int) -> np.ndarray:
    """Return draws for users in ascending order, not all of them: float64, shape (n, per_user)."""
    first = int(users[0])
    return uniforms(seed, purpose, first, int(users[-1]) - first + 1, per_user)[users - first]


def _as_tuned(suite: Suite, kernels: np.ndarray, run: np.ndarray) -> np.ndarray:
    """Replace the kernels that each run's autotuning exchanged: fixed for a run, by a hash of run and kernel."""
    mixed = (run[:, None] ^ (kernels.astype(np.uint64) * MIX)) * MIX
    mixed = (mixed ^ (mixed >> np.uint64(31))) * MIX
    return np.where((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < TUNED, suite.variant[kernels], kernels)


def training_run(
    suite: Suite, application: int, generation: int, run: int, iterations: int, seed: int
) -> tuple[list[str], np.ndarray]:
    """Return a training run, whole iterations of an application on a generation.

    Returns
    -------
    names : list of str
    durations : ndarray of float64, shape (launches,), ns
    """
    kernels = np.tile(suite.applications[application].body, iterations)[None]
    kernels = _as_tuned(suite, kernels, np.array([run], np.uint64))[0]
    noise = ndtri(uniforms(seed, f"training/{application}/{generation}", run, 1, len(kernels))[0])
    duration = suite.median_ns[kernels] * np.exp(suite.spread[kernels] * noise) * SPEED[generation]
    names = suite.names[generation]
    return [names[kernel] for kernel in kernels.tolist()], np.maximum(np.rint(duration), 1)
