"""The sessions of a simulated fleet: who owns which GPU, and which applications run on it over a day.

Each GPU is idle and busy in turn; both spans are exponential, so that at any time the share `load` of the GPUs is busy.
Each busy span is one session: one run of one application. Everything is drawn by (seed, GPU).
"""

import math
from dataclasses import dataclass

import numpy as np

from causeway.core.errors import CausewayError
from causeway.fleet.draws import pick, uniform, uniforms, words
from causeway.fleet.world.applications import GENERATIONS

DAY_S = 86_400
SESSIONS_AT_LEAST = 64
"""Drawn per GPU and day. With sessions of an hour at 10 % load, a GPU has 2.4 on average."""
SESSIONS_AT_MOST = 1440
"""Mean per GPU and day: one a minute, which is the shortest of which a report is sent."""
SHARES = (0.45, 0.35, 0.20)
"""Of the GPU generations in the fleet."""


@dataclass(frozen=True, kw_only=True)
class FleetSettings:
    """The parameters of a simulated fleet.

    Attributes
    ----------
    gpus : int
    load : float
        Share of the GPUs that is busy at any time, 0 to 1.
    session_s : float
        Mean length of a session, seconds.
    zipf : float
        Exponent of the applications' popularity.
    unknown_share : float
        Share of sessions that run an application that the catalogue does not hold.
    large_users : tuple of int
        Numbers of GPUs of the users that own several; all others own one.
    seed : int
    """

    gpus: int
    load: float
    session_s: float
    zipf: float
    unknown_share: float
    large_users: tuple[int, ...]
    seed: int


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """Busy spans, ordered by GPU, then start. All arrays have the shape (sessions,).

    Attributes
    ----------
    gpu, user, application, generation : ndarray of int64
    run : ndarray of uint64
        Identity of the run: what its autotuning chose follows from it.
    start_s, end_s : ndarray of float64
        Seconds since midnight, cut at both ends of the day.
    """

    gpu: np.ndarray
    user: np.ndarray
    application: np.ndarray
    generation: np.ndarray
    run: np.ndarray
    start_s: np.ndarray
    end_s: np.ndarray


def users_of(settings: FleetSettings) -> np.ndarray:
    """Return the user of each GPU, int64, shape (gpus,): the large ones first, then one user per GPU.

    Raises
    ------
    CausewayError
        If the large users own more GPUs than there are.
    """
    several = sum(settings.large_users)
    if several > settings.gpus:
        raise CausewayError(f"fleet/large_users: they own {several} GPUs together, the fleet has {settings.gpus}")
    large = np.repeat(np.arange(len(settings.large_users)), settings.large_users)
    return np.concatenate([large, len(settings.large_users) + np.arange(settings.gpus - several)])


def popularity(n_known: int, n_unknown: int, settings: FleetSettings) -> np.ndarray:
    """Return the share of sessions of each application: Zipf within the known and the unknown ones.

    Parameters
    ----------
    n_known, n_unknown : int
        Numbers of applications.
    settings : FleetSettings

    Returns
    -------
    ndarray of float64, shape (n_known + n_unknown,), the known ones first; adds up to 1
    """
    shares = np.concatenate(
        [
            np.arange(1, n_known + 1, dtype=float) ** -settings.zipf,
            np.arange(1, n_unknown + 1, dtype=float) ** -settings.zipf,
        ]
    )
    shares[:n_known] *= (1 - (settings.unknown_share if n_unknown else 0)) / shares[:n_known].sum()
    if n_unknown:
        shares[n_known:] *= settings.unknown_share / shares[n_known:].sum()
    return shares


def sessions_drawn(settings: FleetSettings) -> int:
    """Return how many sessions are drawn for each GPU: more than any has in a day.

    Their number varies less than a Poisson number of the same mean, m, which is beyond m + 8 sqrt(m) + 8 in fewer than
    one of 10**12 days.

    Raises
    ------
    CausewayError
        If sessions are so short that a GPU has more than `SESSIONS_AT_MOST` on average.
    """
    mean = DAY_S * settings.load / settings.session_s
    if mean > SESSIONS_AT_MOST:
        raise CausewayError(
            f"fleet/session_minutes: a GPU would have {mean:.0f} sessions a day at fleet/load {settings.load:g}, at"
            f" most {SESSIONS_AT_MOST} are simulated; make sessions longer or the load smaller"
        )
    return max(SESSIONS_AT_LEAST, math.ceil(mean + 8 * math.sqrt(mean) + 8))


def simulate_sessions(
    settings: FleetSettings, shares: np.ndarray, first: int = 0, count: int | None = None
) -> Sessions:
    """Simulate a day of the GPUs `first` to `first + count - 1` (all, if None).

    Parameters
    ----------
    settings : FleetSettings
    shares : ndarray of float64, shape (applications,)
        See `popularity`.
    first : int
    count : int or None
    """
    count = settings.gpus - first if count is None else count
    most = sessions_drawn(settings)
    drawn = uniforms(settings.seed, "sessions", first, count, 2 * most + 4)
    spans = -np.log(drawn[:, : 2 * most])
    idle_s = settings.session_s * (1 - settings.load) / settings.load
    begins_busy = drawn[:, -4] < settings.load
    # spans alternate idle, busy; a GPU that begins busy has an idle span of no length first. Exponential spans have no
    # memory, so the rest of a session that began before midnight is as long as a whole one.
    spans[:, 0::2] *= idle_s
    spans[:, 1::2] *= settings.session_s
    spans[begins_busy, 0] = 0
    edges = np.cumsum(spans, axis=1)
    starts = edges[:, 0::2]
    ends = np.minimum(edges[:, 1::2], DAY_S)
    row, which = np.nonzero(starts < DAY_S)
    runs = words(settings.seed, "runs", first, count, 2 * most)
    return Sessions(
        gpu=row + first,
        user=users_of(settings)[row + first],
        application=pick(uniform(runs[row, 2 * which]), shares),
        generation=pick(drawn[row, -3], np.array(SHARES[: len(GENERATIONS)])),
        run=runs[row, 2 * which + 1],
        start_s=starts[row, which],
        end_s=ends[row, which],
    )
