"""From sums to a release: the threshold, each server's noise, the ledger, and the designer's sum of both noisy shares.

Each server adds the full noise to its share of the sum, so one honest server suffices for the claimed epsilon; the
designer sees the sum of both noisy shares only.
"""

import io
import json
import re
from dataclasses import dataclass

import numpy as np

from causeway.core.errors import CausewayError
from causeway.fleet.protection.aggregator import centred
from causeway.fleet.protection.ledger import WHOLE, Ledger, LedgerError
from causeway.fleet.protection.modes import WINDOWS, cells_of_part
from causeway.fleet.protection.noise import Noise
from causeway.fleet.report_layout import DETAIL, TRAFFIC, WORD, ReportLayout

POPULATION = re.compile(r"[A-Za-z0-9_.-]{1,64}")
"""What a fleet may be called."""


@dataclass(frozen=True)
class Request:
    """One release: of which epoch, part and window. The detail part is released for the whole epoch, traffic for
    each window.
    """

    epoch: int
    part: str
    window: int

    def name(self, population: str, layout: ReportLayout) -> str:
        """Return the release's identity; more reports that come later do not change it, so a window is released
        once.
        """
        return f"{population}-{self.epoch}-{self.part}-{self.window}-{layout.digest.hex()[:8]}"


def requests(epoch: int, windows: int = WINDOWS) -> list[Request]:
    """Return all releases of an epoch, in order."""
    return [*(Request(epoch, TRAFFIC, window) for window in range(windows)), Request(epoch, DETAIL, WHOLE)]


def reports_behind(reports: np.ndarray, request: Request) -> int:
    """Return the number of reports in a release.

    Parameters
    ----------
    reports : ndarray of int64, shape (windows,)
    request : Request
    """
    return int(reports.sum() if request.window == WHOLE else reports[request.window])


def released_cells(sums: np.ndarray, request: Request, layout: ReportLayout) -> np.ndarray:
    """Return a release's cells.

    Parameters
    ----------
    sums : ndarray of uint32 or int64, shape (windows, cells of the layout)
    request : Request
    layout : ReportLayout

    Returns
    -------
    ndarray of the dtype of `sums`, shape (cells of the release's part,)
    """
    cells = cells_of_part(layout, request.part)
    rows = sums if request.window == WHOLE else sums[request.window : request.window + 1]
    return rows[:, cells].sum(0, dtype=sums.dtype)


class Server:
    """One server's side of releases.

    Parameters
    ----------
    role : str
    ledger : Ledger
    noise : Noise
    layout : ReportLayout
    threshold : int
        Fewest joined reports that are released.
    population : str
        Names the fleet; part of the names of the ledger's files.

    Raises
    ------
    CausewayError
        If such a name could stand for another folder.
    """

    def __init__(
        self, role: str, ledger: Ledger, noise: Noise, layout: ReportLayout, threshold: int, population: str
    ) -> None:
        if not POPULATION.fullmatch(population):
            raise CausewayError(f"the fleet's name {population!r}: expected up to 64 letters, digits, `_`, `.` and `-`")
        self.role = role
        self.ledger = ledger
        self.noise = noise
        self.layout = layout
        self.threshold = threshold
        self.population = population

    def released(self, request: Request) -> bytes | None:
        """Return the bytes of an earlier answer to a request, None if there was none; see `Ledger.released`."""
        return self.ledger.released(request.name(self.population, self.layout))

    def noisy_share(
        self, part: np.ndarray, reports: int, request: Request, joined: str | None = None
    ) -> np.ndarray | None:
        """Return this server's noisy share of a release, or None below the threshold, which spends no budget.

        Parameters
        ----------
        part : ndarray of uint32 or int64, shape of `released_cells`
            Its share of the sums of the cells that the release holds; see `released_cells`.
        reports : int
            Joined reports in them.
        request : Request
        joined : str or None
            Digest of the epoch's joined reports; see `Ledger.release`.

        Returns
        -------
        ndarray of the dtype and shape of `part`, or None

        Raises
        ------
        LedgerError
            If the request is none of the epoch's (`requests`), or the ledger refuses; see `Ledger.release`.
        """
        if request not in requests(request.epoch, self.ledger.windows):
            raise LedgerError(f"{request.part} of window {request.window} is not a release of this fleet")
        if reports < self.threshold:
            return None
        name = request.name(self.population, self.layout)

        def draw() -> bytes:
            sections = [section for section in self.layout.sections if section.part == request.part]
            return (part + self.noise.draw(sections, f"{self.role}/{name}").astype(part.dtype)).tobytes()

        content = self.ledger.release(
            name,
            epoch=request.epoch,
            part=request.part,
            window=request.window,
            epsilon=self.layout.epsilon(request.part),
            simulated=self.noise.simulated,
            draw=draw,
            joined=joined,
        )
        return np.frombuffer(content, part.dtype)


@dataclass(frozen=True, kw_only=True)
class Release:
    """The released sums of one epoch, as the designer has them.

    Attributes
    ----------
    traffic : ndarray of int64, shape (windows, rows of the first section)
        Noisy counts; rows of windows below the threshold are 0 and `released` is False there.
    released : ndarray of bool, shape (windows,)
    detail : ndarray of int64, shape (cells of the detail part,), or None
        Noisy counts of the day.
    epsilon : float
        Spent by each user; -1 without any protection.
    """

    traffic: np.ndarray
    released: np.ndarray
    detail: np.ndarray | None
    epsilon: float


def combine(shares: list[np.ndarray]) -> np.ndarray:
    """Return the sum of noisy `shares` (any shape, the same for all), int64, the same shape: centred modulo 2**32 for
    uint32, plain for int64.
    """
    if shares[0].dtype == WORD:
        return centred(np.add.reduce(shares, dtype=WORD))
    return np.add.reduce(shares, dtype=np.int64)


def assemble(
    parts: dict[Request, list[np.ndarray] | None], layout: ReportLayout, epsilon: float, windows: int = WINDOWS
) -> Release:
    """Return the release.

    Parameters
    ----------
    parts : dict of Request to list of ndarray, or None
        Both servers' noisy shares, of the shapes of `released_cells`; None below the threshold.
    layout : ReportLayout
    epsilon : float
        Spent by each user.
    windows : int
        Of the epoch.
    """
    rows = layout.by_name["applications"].rows
    traffic = np.zeros((windows, rows), np.int64)
    released = np.zeros(windows, bool)
    detail = None
    for request, shares in parts.items():
        if shares is None:
            continue
        if request.part == DETAIL:
            detail = combine(shares)
        else:
            traffic[request.window] = combine(shares)
            released[request.window] = True
    return Release(traffic=traffic, released=released, detail=detail, epsilon=epsilon)


def check_bounds(release: Release, layout: ReportLayout, reports: int) -> None:
    """Refuse a release of which a cell lies beyond what so many reports can give with the noise: a report outside its
    bounds was among them, which no server can see inside its share, and may have changed all other cells as well.

    Parameters
    ----------
    release : Release
    layout : ReportLayout
    reports : int
        Joined reports, or the most that the fleet takes.

    Raises
    ------
    CausewayError
        Names the cells by section, and what to do.
    """
    beyond = {}
    first = 0
    for section in layout.sections:
        if section.part == DETAIL:
            size = section.rows * section.columns
            counts = release.detail[first : first + size] if release.detail is not None else np.zeros(0, np.int64)
            first += size
        else:
            counts = release.traffic[release.released]
        low, high = layout.farthest(section, reports)
        number = int(((counts < low) | (counts > high)).sum())
        if number:
            beyond[section.name] = number
    if beyond:
        cells = ", ".join(f"{number} of {name}" for name, number in beyond.items())
        raise CausewayError(
            f"the release is spoilt: cells lie beyond what {reports} reports can give with the noise ({cells}). A"
            " client sent a report outside its bounds, which may have changed every other cell too: nothing of this"
            " epoch can be used"
        )


def encoded(release: Release, facts: dict) -> bytes:
    """Return a release's bytes: a line of facts, then the arrays; equal releases give equal bytes."""
    head = facts | {
        "epsilon": release.epsilon,
        "released": release.released.tolist(),
        "detail": release.detail is not None,
    }
    out = io.BytesIO()
    out.write(json.dumps(head, sort_keys=True).encode() + b"\n")
    np.save(out, release.traffic)
    if release.detail is not None:
        np.save(out, release.detail)
    return out.getvalue()


def decoded(content: bytes) -> tuple[Release, dict]:
    """Return a release and its facts; see `encoded`. Raises `CausewayError` if it cannot be read."""
    source = io.BytesIO(content)
    try:
        head = json.loads(source.readline())
        traffic = np.load(source, allow_pickle=False)
        detail = np.load(source, allow_pickle=False) if head["detail"] else None
        return Release(
            traffic=traffic, released=np.array(head["released"], bool), detail=detail, epsilon=head["epsilon"]
        ), head
    except (ValueError, KeyError, TypeError, EOFError, OSError) as error:
        raise CausewayError(f"the release cannot be read ({type(error).__name__}); fetch it again") from None
