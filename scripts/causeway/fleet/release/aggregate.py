"""The servers' part after the day: sums over shards, then every release that threshold and budget allow."""

import functools
import secrets
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from causeway.fleet import local
from causeway.fleet.layout import DETAIL, TRAFFIC, Layout
from causeway.fleet.ledger import Ledger
from causeway.fleet.modes import WINDOWS, cells_of_part
from causeway.fleet.noise import SecureNoise, SeededNoise
from causeway.fleet.program import read_all
from causeway.fleet.release import WHOLE, Release, Request, Server, assemble, count_of, part_of, requests


@dataclass(frozen=True)
class Settings:
    """How sums are released.

    Attributes
    ----------
    mode : str
    layout : Layout
    shards : Path
        Folder that `program.run` wrote.
    ledgers : Path
        Folder of both servers' ledgers; each remembers the other's head.
    budget : Fraction
        Epsilon per user and day.
    delta : float
    threshold : int
    epoch : int
    population : str
        Names the fleet.
    seed : int or None
        Of a simulation's noise; None for noise from the system's entropy.
    """

    mode: str
    layout: Layout
    shards: Path
    ledgers: Path
    budget: Fraction
    delta: float
    threshold: int
    epoch: int
    population: str
    seed: int | None


@dataclass(frozen=True)
class Outcome:
    """A release and what it took.

    Attributes
    ----------
    release : Release
    reports : ndarray of int64, shape (windows,)
    bytes_per_report : int
    scales : dict of section to float
        Noise scale of each of two servers; 0 without noise. For `ldp`, the standard deviation of a cell over the day.
    """

    release: Release
    reports: np.ndarray
    bytes_per_report: int
    scales: dict[str, float]


def aggregate(settings: Settings) -> Outcome:
    """Return the outcome of a day in one mode."""
    return {"clear": _clear, "share2": _share2, "ahe": _ahe, "ldp": _ldp}[settings.mode](settings)


def _add(settings: Settings, names: tuple[str, ...]) -> tuple[list[np.ndarray], np.ndarray, int]:
    """Return sums over shards of the named arrays, the reports by window, and the bytes of a report."""
    totals, reports, size = None, np.zeros(WINDOWS, np.int64), 0
    for arrays, bytes_per_report in read_all(settings.shards):
        found = [arrays[name] for name in names]
        totals = found if totals is None else [total + part for total, part in zip(totals, found, strict=True)]
        reports, size = reports + arrays["reports"], max(size, bytes_per_report)
    if totals is None:
        totals = [np.zeros((WINDOWS, settings.layout.cells), np.uint32) for _ in names]
    return totals, reports, size


def _clear(settings: Settings) -> Outcome:
    (sums,), reports, size = _add(settings, ("sums",))
    parts = {request: [part_of(sums.astype(np.int64), request, settings.layout)] for request in requests(settings.epoch)}
    released = assemble(parts, settings.layout, float("inf"))
    return Outcome(
        Release(released.traffic, released.released, released.detail, -1.0), reports, size, dict.fromkeys(settings.layout.by_name, 0.0)
    )


def _servers(settings: Settings) -> list[Server]:
    noise = SecureNoise() if settings.seed is None else SeededNoise(settings.seed)
    made = []
    for role, other in (("leader", "helper"), ("helper", "leader")):
        anchor = settings.ledgers / other / f"head_of_{role}.json"
        ledger = Ledger(settings.ledgers / role, [anchor], settings.budget, settings.delta, noise.simulated)
        made.append(Server(role, ledger, noise, settings.layout, settings.threshold, settings.population))
    return made


def _outcome(
    settings: Settings, servers: list[Server], parts: dict[Request, list[np.ndarray] | None], reports: np.ndarray, size: int
) -> Outcome:
    released = assemble(parts, settings.layout, servers[0].ledger.spent(settings.epoch))
    return Outcome(released, reports, size, {section.name: section.scale for section in settings.layout.sections})


def _share2(settings: Settings) -> Outcome:
    """Let both servers noise and release their shares of the sums."""
    sums, reports, size = _add(settings, ("leader", "helper"))
    servers, parts = _servers(settings), {}
    for request in requests(settings.epoch):
        count = count_of(reports, request)
        found = [
            server.noised(part_of(total, request, settings.layout), count, request) for server, total in zip(servers, sums, strict=True)
        ]
        parts[request] = None if found[0] is None else found
    return _outcome(settings, servers, parts, reports, size)


def _ahe(settings: Settings) -> Outcome:
    """Add ciphertexts without the key. The leader adds its noise, and a random mask on what is not released, before the helper decrypts."""
    from causeway.fleet.homomorphic import PLAIN_MODULUS, Encryptor, decrypt

    layout = settings.layout
    secret, public = ((settings.shards / name).read_bytes() for name in ("key_holder.secret", "public.context"))
    encryptor, windows, reports, size = Encryptor(public, layout.cells), {}, np.zeros(WINDOWS, np.int64), 0
    for arrays, bytes_per_report in read_all(settings.shards):
        reports, size = reports + arrays["reports"], max(size, bytes_per_report)
        for name in (name for name in arrays if name.startswith("window_")):
            window = int(name.removeprefix("window_"))
            windows[window] = encryptor.add(windows.get(window), arrays[name].tobytes())
    leader, helper = servers = _servers(settings)
    parts: dict[Request, list[np.ndarray] | None] = {}
    for request in requests(settings.epoch):
        cells, count = cells_of_part(layout, request.part), count_of(reports, request)
        noise = leader.noised(np.zeros(len(cells), np.int64), count, request)
        if noise is None:
            parts[request] = None
            continue
        wanted = windows.values() if request.window == WHOLE else [windows[request.window]]
        total = functools.reduce(encryptor.add, wanted)
        hidden = np.array([secrets.randbelow(PLAIN_MODULUS) for _ in range(layout.cells)], np.int64)
        hidden[cells] = noise
        opened = decrypt(encryptor.add_noise(total, hidden), secret, layout.cells)[cells]
        parts[request] = [helper.noised(opened, count, request)]
    return _outcome(settings, servers, parts, reports, size)


def _ldp(settings: Settings) -> Outcome:
    (sums,), reports, size = _add(settings, ("sums",))
    epsilon = float(settings.budget)
    rows = settings.layout.by_name["applications"].rows
    traffic, released = np.zeros((WINDOWS, rows), np.int64), reports >= settings.threshold
    for window in np.nonzero(released)[0].tolist():
        counts, _ = local.estimate(sums[window].astype(np.float64), int(reports[window]), epsilon)
        traffic[window] = np.rint(counts[:rows])
    counts, spread = local.estimate(sums.sum(0).astype(np.float64), int(reports.sum()), epsilon)
    detail = np.zeros(sum(s.rows * s.columns for s in settings.layout.sections if s.part == DETAIL), np.int64)
    section = settings.layout.by_name["durations"]
    first = section.first - sum(s.rows * s.columns for s in settings.layout.sections if s.part == TRAFFIC)
    detail[first : first + section.rows * section.columns] = np.rint(counts[rows:] * section.units)
    spreads = {"applications": spread, "durations": spread * section.units}
    return Outcome(Release(traffic, released, detail, epsilon), reports, size, spreads)
