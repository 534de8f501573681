"""What agents sample: one short stretch of launches per user and day, of the first session that lasts long enough.

One report per user and day, whatever the user owns: the sensitivity of every sum is then one report. A user reports soon after their first
session of the day began, so each user's data enter one hourly window only.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from causeway.fleet.applications import SPEED, Suite
from causeway.fleet.draws import uniforms
from causeway.fleet.tokens import MIX
from causeway.fleet.world import DAY_S, Sessions

WINDOW_S = 60.0
"""Length of the window over which an agent watches a session."""
JITTER_S = 600.0
"""A report waits a random time up to this, so that its arrival does not tell when a session began."""
TUNED = 0.01
"""Probability that a run's autotuning replaces a kernel by its variant."""
FOREIGN = 0.005
"""Probability that another program's launch stands in the place of one."""
USER_SPREAD = 0.08
"""Standard deviation of the logarithm of a user's speed."""


@dataclass(frozen=True)
class Reports:
    """Who reports what and when: one row per user that was active, ordered by user.

    Attributes
    ----------
    user, gpu, application, generation : ndarray of int64
    run : ndarray of uint64
    sent_s : ndarray of float64
        Time of sending, seconds since midnight.
    """

    user: np.ndarray
    gpu: np.ndarray
    application: np.ndarray
    generation: np.ndarray
    run: np.ndarray
    sent_s: np.ndarray


@dataclass(frozen=True)
class Samples:
    """What was seen on the GPUs, one row per report.

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
    """Choose each user's report of the day: the earliest session that lasts a whole window, whichever of the user's GPUs it runs on."""
    long_enough = np.nonzero((sessions.end_s - sessions.start_s >= WINDOW_S) & (sessions.start_s + WINDOW_S + JITTER_S < DAY_S))[0]
    order = long_enough[np.lexsort((sessions.gpu[long_enough], sessions.start_s[long_enough], sessions.user[long_enough]))]
    users, at = np.unique(sessions.user[order], return_index=True)
    chosen = order[at]
    highest = int(users.max(initial=-1)) + 1
    wait = uniforms(seed, "jitter", 0, highest, 4)[users, 0] * JITTER_S
    columns = (getattr(sessions, name)[chosen] for name in ("gpu", "application", "generation", "run"))
    return Reports(users, *columns, sessions.start_s[chosen] + WINDOW_S + wait)


def observe(suite: Suite, reports: Reports, rows: slice, launches: int, seed: int) -> Samples:
    """Return what the agents of some reports see: `launches` launches in a row, from a random place of an iteration."""
    users = reports.user[rows]
    n = len(users)
    kernels = np.zeros((n, launches), np.int64)
    chance = _by_user(seed, "sequence", users, launches + 4)
    for application in np.unique(reports.application[rows]).tolist():
        body = suite.applications[application].body
        mine = np.nonzero(reports.application[rows] == application)[0]
        offset = (chance[mine, launches] * len(body)).astype(np.int64)
        kernels[mine] = body[(offset[:, None] + np.arange(launches)) % len(body)]
    kernels = _as_tuned(suite, kernels, reports.run[rows])
    strange = chance[:, :launches] < FOREIGN
    kernels[strange] = (chance[:, :launches][strange] / FOREIGN * len(suite.applications)).astype(np.int64)
    speed = np.array(SPEED)[reports.generation[rows]] * np.exp(USER_SPREAD * ndtri(chance[:, launches + 1]))
    noise = ndtri(_by_user(seed, "durations", users, launches))
    duration = suite.median_ns[kernels] * np.exp(suite.spread[kernels] * noise) * speed[:, None]
    duration = np.maximum(np.rint(duration), 1).astype(np.int64)
    occupancy = np.clip(suite.occupancy[kernels] + 0.08 * ndtri(_by_user(seed, "occupancy", users, launches)), 0.0, 1.0)
    ours = [suite.applications[application] for application in reports.application[rows].tolist()]
    busy = np.clip(np.array([a.busy for a in ours]) + 0.06 * ndtri(chance[:, launches + 2]), 0.01, 1.0)
    gpu_ms = busy * WINDOW_S * 1e3
    moved = np.array([a.mib_per_s for a in ours]) * WINDOW_S * np.exp(0.2 * ndtri(chance[:, launches + 3]))
    totals = np.column_stack([gpu_ms, gpu_ms * 1e6 / duration.mean(1), moved])
    return Samples(kernels, duration, occupancy, busy, totals)


def _by_user(seed: int, purpose: str, users: np.ndarray, each: int) -> np.ndarray:
    """Return draws for users in ascending order, which may leave some out."""
    first = int(users[0])
    return uniforms(seed, purpose, first, int(users[-1]) - first + 1, each)[users - first]


def _as_tuned(suite: Suite, kernels: np.ndarray, run: np.ndarray) -> np.ndarray:
    """Replace the kernels that each run's autotuning exchanged: a fixed choice for a run, drawn by mixing run and kernel."""
    mixed = (run[:, None] ^ (kernels.astype(np.uint64) * MIX)) * MIX
    mixed = (mixed ^ (mixed >> np.uint64(31))) * MIX
    return np.where((mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53 < TUNED, suite.variant[kernels], kernels)


def training_run(suite: Suite, application: int, generation: int, run: int, iterations: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Return names and durations of a run to learn from: whole iterations of an application on a generation."""
    kernels = np.tile(suite.applications[application].body, iterations)[None]
    kernels = _as_tuned(suite, kernels, np.array([run], np.uint64))[0]
    noise = ndtri(uniforms(seed, f"training/{application}/{generation}", run, 1, len(kernels))[0])
    duration = suite.median_ns[kernels] * np.exp(suite.spread[kernels] * noise) * SPEED[generation]
    names = suite.names[generation]
    return [names[kernel] for kernel in kernels.tolist()], np.maximum(np.rint(duration), 1)
