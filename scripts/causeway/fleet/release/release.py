"""From sums to what is published: the threshold, each server's noise, the ledger, and the designer's sum of both.

Each server adds the full noise to its share of the sum, so one honest server suffices for the claimed epsilon; the designer sees the sum of
both noised shares only.
"""

import io
import json
from dataclasses import dataclass

import numpy as np

from causeway.errors import CausewayError
from causeway.fleet.collector import signed
from causeway.fleet.layout import DETAIL, TRAFFIC, WORD, Layout
from causeway.fleet.ledger import Ledger
from causeway.fleet.modes import WINDOWS, cells_of_part
from causeway.fleet.noise import Noise

WHOLE = -1
"""The window that stands for the whole epoch."""


@dataclass(frozen=True)
class Request:
    """One release: of which epoch, part and window. The detail part is released for the whole epoch, traffic for each window."""

    epoch: int
    part: str
    window: int

    def name(self, population: str, layout: Layout) -> str:
        """Return the release's identity; more reports that come later do not change it, so a window is released once."""
        return f"{population}-{self.epoch}-{self.part}-{self.window}-{layout.digest.hex()[:8]}"


def requests(epoch: int, windows: int = WINDOWS) -> list[Request]:
    """Return all releases of an epoch, in order."""
    return [*(Request(epoch, TRAFFIC, window) for window in range(windows)), Request(epoch, DETAIL, WHOLE)]


def count_of(reports: np.ndarray, request: Request) -> int:
    """Return the number of reports behind a release, from reports by window."""
    return int(reports.sum() if request.window == WHOLE else reports[request.window])


def part_of(sums: np.ndarray, request: Request, layout: Layout) -> np.ndarray:
    """Return the cells that a release holds, from sums by window."""
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
    layout : Layout
    threshold : int
        Fewest joined reports that are released.
    population : str
        Names the fleet.
    """

    def __init__(self, role: str, ledger: Ledger, noise: Noise, layout: Layout, threshold: int, population: str) -> None:
        self.role, self.ledger, self.noise, self.layout, self.threshold, self.population = (
            role,
            ledger,
            noise,
            layout,
            threshold,
            population,
        )

    def noised(self, part: np.ndarray, reports: int, request: Request) -> np.ndarray | None:
        """Return this server's noised share for a release, or None below the threshold, which costs nothing.

        Parameters
        ----------
        part : ndarray of uint32 or int64
            Its share of the sums of the cells that the release holds; see `part_of`.
        reports : int
            Joined reports behind them.
        request : Request
        """
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
            foreseeable=self.noise.simulated,
            draw=draw,
        )
        return np.frombuffer(content, part.dtype)


@dataclass(frozen=True)
class Release:
    """What the designer holds of one epoch.

    Attributes
    ----------
    traffic : ndarray of int64, shape (windows, rows of the first section)
        Noised counts; rows of windows below the threshold are 0 and `released` is False there.
    released : ndarray of bool, shape (windows,)
    detail : ndarray of int64, shape (cells of the detail part,), or None
        Noised counts of the day.
    epsilon : float
        What users have spent; -1 without any protection.
    """

    traffic: np.ndarray
    released: np.ndarray
    detail: np.ndarray | None
    epsilon: float


def combine(shares: list[np.ndarray]) -> np.ndarray:
    """Return the sum of noised shares, int64: modulo 2**32 for words, plain for integers."""
    if shares[0].dtype == WORD:
        return signed(np.sum(shares, axis=0, dtype=WORD))
    return np.sum(shares, axis=0, dtype=np.int64)


def assemble(parts: dict[Request, list[np.ndarray] | None], layout: Layout, epsilon: float, windows: int = WINDOWS) -> Release:
    """Return the release from both servers' noised shares by request; None for those below the threshold."""
    rows = layout.by_name["applications"].rows
    traffic, released, detail = np.zeros((windows, rows), np.int64), np.zeros(windows, bool), None
    for request, shares in parts.items():
        if shares is None:
            continue
        if request.part == DETAIL:
            detail = combine(shares)
        else:
            traffic[request.window], released[request.window] = combine(shares), True
    return Release(traffic, released, detail, epsilon)


def encoded(release: Release, facts: dict) -> bytes:
    """Return a release's bytes: a line of facts, then the arrays; equal releases give equal bytes."""
    head = facts | {"epsilon": release.epsilon, "released": release.released.tolist(), "detail": release.detail is not None}
    out = io.BytesIO()
    out.write(json.dumps(head, sort_keys=True).encode() + b"\n")
    np.save(out, release.traffic)
    if release.detail is not None:
        np.save(out, release.detail)
    return out.getvalue()


def decoded(content: bytes) -> tuple[Release, dict]:
    """Return a release and its facts; see `encoded`."""
    source = io.BytesIO(content)
    try:
        head = json.loads(source.readline())
        traffic = np.load(source, allow_pickle=False)
        detail = np.load(source, allow_pickle=False) if head["detail"] else None
        return Release(traffic, np.array(head["released"], bool), detail, head["epsilon"]), head
    except (ValueError, KeyError, OSError) as error:
        raise CausewayError(f"the release cannot be read ({type(error).__name__}); fetch it again") from None
