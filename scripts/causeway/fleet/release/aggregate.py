"""The servers' part after the day: sums over shards, then every release within threshold and budget."""

import functools
import secrets
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np

from causeway.fleet.protection import local_dp
from causeway.fleet.protection.ledger import Ledger
from causeway.fleet.protection.modes import WINDOWS, cells_of_part
from causeway.fleet.protection.noise import SecureNoise, SeededNoise
from causeway.fleet.protection.protect_reports import read_shards
from causeway.fleet.release.cell_noise import CellNoise, ReportNoise, ServerNoise, of_servers
from causeway.fleet.release.release import (
    WHOLE,
    Release,
    Request,
    Server,
    assemble,
    released_cells,
    reports_behind,
    requests,
)
from causeway.fleet.report_layout import DETAIL, TRAFFIC, ReportLayout


@dataclass(frozen=True, kw_only=True)
class ReleaseSettings:
    """How sums are released.

    Attributes
    ----------
    mode : str
    layout : ReportLayout
    shards : Path
        Folder that `protect_reports.run` wrote.
    ledgers : Path
        Folder of both servers' ledgers; each holds the other's anchor.
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
    layout: ReportLayout
    shards: Path
    ledgers: Path
    budget: Fraction
    delta: float
    threshold: int
    epoch: int
    population: str
    seed: int | None


@dataclass(frozen=True, kw_only=True)
class ReleasedDay:
    """A day's release, with its reports' number and size, and its noise.

    Attributes
    ----------
    release : Release
    reports : ndarray of int64, shape (windows,)
    bytes_per_report : int
    noise : dict of section to CellNoise
        Of the sections that were released.
    """

    release: Release
    reports: np.ndarray
    bytes_per_report: int
    noise: dict[str, CellNoise]


def aggregate(settings: ReleaseSettings) -> ReleasedDay:
    """Release a day in one mode.

    Raises
    ------
    CausewayError
        If a shard is damaged, or a ledger refuses.
    """
    return {"clear": _clear, "share2": _share2, "ahe": _ahe, "ldp": _ldp}[settings.mode](settings)


def _add(settings: ReleaseSettings, names: tuple[str, ...]) -> tuple[list[np.ndarray], np.ndarray, int]:
    """Return sums over shards of the named arrays, the reports by window, and the bytes of a report."""
    totals = None
    reports = np.zeros(WINDOWS, np.int64)
    size = 0
    for arrays, bytes_per_report in read_shards(settings.shards):
        parts = [arrays[name] for name in names]
        totals = parts if totals is None else [total + part for total, part in zip(totals, parts, strict=True)]
        reports = reports + arrays["reports"]
        size = max(size, bytes_per_report)
    if totals is None:
        totals = [np.zeros((WINDOWS, settings.layout.cells), np.uint32) for _ in names]
    return totals, reports, size


def _clear(settings: ReleaseSettings) -> ReleasedDay:
    (sums,), reports, size = _add(settings, ("sums",))
    parts: dict[Request, list[np.ndarray] | None] = {
        request: [released_cells(sums.astype(np.int64), request, settings.layout)]
        for request in requests(settings.epoch)
    }
    released = assemble(parts, settings.layout, float("inf"))
    return ReleasedDay(
        release=Release(traffic=released.traffic, released=released.released, detail=released.detail, epsilon=-1.0),
        reports=reports,
        bytes_per_report=size,
        noise=dict.fromkeys(settings.layout.by_name, ServerNoise(0.0)),
    )


def _servers(settings: ReleaseSettings) -> list[Server]:
    noise = SecureNoise() if settings.seed is None else SeededNoise(settings.seed)
    made = []
    for role, other in (("leader", "helper"), ("helper", "leader")):
        anchor = settings.ledgers / other / f"head_of_{role}.json"
        ledger = Ledger(settings.ledgers / role, [anchor], settings.budget, settings.delta, noise.simulated)
        made.append(Server(role, ledger, noise, settings.layout, settings.threshold, settings.population))
    return made


def _outcome(
    settings: ReleaseSettings,
    servers: list[Server],
    parts: dict[Request, list[np.ndarray] | None],
    reports: np.ndarray,
    size: int,
) -> ReleasedDay:
    released = assemble(parts, settings.layout, servers[0].ledger.spent(settings.epoch))
    return ReleasedDay(
        release=released,
        reports=reports,
        bytes_per_report=size,
        noise=of_servers(settings.layout),
    )


def _share2(settings: ReleaseSettings) -> ReleasedDay:
    """Add both servers' noise to their shares of the sums and release them."""
    sums, reports, size = _add(settings, ("leader", "helper"))
    servers = _servers(settings)
    parts: dict[Request, list[np.ndarray] | None] = {}
    for request in requests(settings.epoch):
        count = reports_behind(reports, request)
        shares = [
            server.noisy_share(released_cells(total, request, settings.layout), count, request)
            for server, total in zip(servers, sums, strict=True)
        ]
        parts[request] = [share for share in shares if share is not None] or None
    return _outcome(settings, servers, parts, reports, size)


def _ahe(settings: ReleaseSettings) -> ReleasedDay:
    """Add ciphertexts without the key. The leader adds its noise, and a random mask to cells that are not released,
    before the helper decrypts.
    """
    from causeway.fleet.protection.homomorphic import PLAIN_MODULUS, Encryptor, decrypt

    layout = settings.layout
    secret, public = ((settings.shards / name).read_bytes() for name in ("key_holder.secret", "public.context"))
    encryptor = Encryptor(public, layout.cells)
    windows: dict[int, bytes] = {}
    reports = np.zeros(WINDOWS, np.int64)
    size = 0
    for arrays, bytes_per_report in read_shards(settings.shards):
        reports = reports + arrays["reports"]
        size = max(size, bytes_per_report)
        for name in (name for name in arrays if name.startswith("window_")):
            window = int(name.removeprefix("window_"))
            windows[window] = encryptor.add(windows.get(window), arrays[name].tobytes())
    leader, helper = servers = _servers(settings)
    parts: dict[Request, list[np.ndarray] | None] = {}
    for request in requests(settings.epoch):
        cells = cells_of_part(layout, request.part)
        count = reports_behind(reports, request)
        noise = leader.noisy_share(np.zeros(len(cells), np.int64), count, request)
        if noise is None:
            parts[request] = None
            continue
        wanted = windows.values() if request.window == WHOLE else [windows[request.window]]
        total = functools.reduce(encryptor.add, wanted)
        mask = np.array([secrets.randbelow(PLAIN_MODULUS) for _ in range(layout.cells)], np.int64)
        mask[cells] = noise
        decrypted = decrypt(encryptor.add_noise(total, mask), secret, layout.cells)[cells]
        share = helper.noisy_share(decrypted, count, request)
        parts[request] = None if share is None else [share]
    return _outcome(settings, servers, parts, reports, size)


def _ldp(settings: ReleaseSettings) -> ReleasedDay:
    """Estimate counts from the reports' flags. The epsilon is spent with the reports, released or not."""
    (sums,), reports, size = _add(settings, ("sums",))
    epsilon = float(settings.budget)
    rows = settings.layout.by_name["applications"].rows
    traffic = np.zeros((WINDOWS, rows), np.int64)
    released = reports >= settings.threshold
    for window in np.nonzero(released)[0].tolist():
        counts, _ = local_dp.estimate(sums[window].astype(np.float64), int(reports[window]), epsilon)
        traffic[window] = np.rint(counts[:rows])
    section = settings.layout.by_name["durations"]
    detail = None
    if reports.sum() >= settings.threshold:
        counts, _ = local_dp.estimate(sums.sum(0).astype(np.float64), int(reports.sum()), epsilon)
        detail = np.zeros(sum(s.rows * s.columns for s in settings.layout.sections if s.part == DETAIL), np.int64)
        first = section.first - sum(s.rows * s.columns for s in settings.layout.sections if s.part == TRAFFIC)
        detail[first : first + section.rows * section.columns] = np.rint(counts[rows:] * section.contribution_bound)
    by_window = tuple(reports.tolist())
    noise: dict[str, CellNoise] = {
        "applications": ReportNoise(by_window, epsilon),
        "durations": ReportNoise(by_window, epsilon, section.contribution_bound),
    }
    return ReleasedDay(
        release=Release(traffic=traffic, released=released, detail=detail, epsilon=epsilon),
        reports=reports,
        bytes_per_report=size,
        noise=noise,
    )
