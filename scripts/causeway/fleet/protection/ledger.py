"""The privacy ledger: the releases of each epoch, their epsilon, and the refusal to exceed the budget.

A hash chain: an append-only file of lines, each holding the hash of the one before. An anchor, kept elsewhere (with the
other server), holds the chain's head: without it, deleting the ledger would restore the whole budget. Nothing is handed
out, and no further line entered, before the anchor holds the last line's hash: a crash or a full disk leaves it at most
one line behind. A release's bytes are stored before they are handed out, so that a retry gives the same bytes and noise
is drawn once.

Privacy accounting: a user's report of an epoch lies in one window, so the windows of a part cost their largest epsilon,
not their sum (parallel composition, McSherry 2009); a release of the whole epoch overlaps them and is added. Parts are
composed by dp-accounting (sequential composition).
"""

import contextlib
import fcntl
import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.fleet.report_layout import DETAIL, TRAFFIC, make_layout

START = "0" * 64
KEYS = frozenset({"epoch", "part", "window", "epsilon", "release", "sha256", "simulated"})
"""What each line of a ledger has, beside the hash of the one before."""
WHOLE = -1
"""The window that stands for the whole epoch."""
WINDOWS = 24
"""Windows of an epoch: the hours of a day."""


class LedgerError(CausewayError):
    """A release that the ledger does not allow."""


def composed_epsilon(epsilons: Iterable[Fraction], delta: float) -> float:
    """Return the epsilon, at delta, of mechanisms that are pure epsilon-DP each.

    Optimal composition (Kairouz, Oh and Viswanath 2015) by dp-accounting's privacy loss distributions; at delta 0,
    their sum.
    """
    each = [float(epsilon) for epsilon in epsilons]
    if delta <= 0 or len(each) < 2:
        return math.fsum(each)
    from dp_accounting.pld import common, privacy_loss_distribution

    grouped: dict[float, int] = {}
    for epsilon in each:
        grouped[epsilon] = grouped.get(epsilon, 0) + 1
    total: Any = None  # dp-accounting declares no types
    for epsilon, times in sorted(grouped.items()):
        step = privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, 0.0))
        step = step.self_compose(times) if times > 1 else step
        total = step if total is None else total.compose(step)
    return min(float(total.get_epsilon_for_delta(delta)), math.fsum(each))


def check_budget(settings: Mapping) -> None:
    """Refuse sections whose composed epsilon exceeds the budget, before anything is computed; the ledger would refuse
    the last release.

    Raises
    ------
    CausewayError
        In that case, or if more launches are timed than sampled.
    """
    layout = make_layout(1, 1, settings["kernel_cells"], settings["epsilon"], settings["clips"])
    total = composed_epsilon([layout.epsilon(part) for part in (TRAFFIC, DETAIL)], settings["delta"])
    if total > settings["budget"] * (1 + 1e-9):
        raise CausewayError(
            f"fleet/epsilon: the sections cost {total:.4g} together, more than fleet/budget, {settings['budget']:g}"
        )
    if settings["timed_launches"] > settings["launches"]:
        raise CausewayError(
            f"fleet/timed_launches: {settings['timed_launches']}, more than fleet/launches, {settings['launches']}"
        )


def _cost(windows: Mapping[int, Fraction]) -> Fraction:
    """Return the epsilon of a part: the windows are disjoint, so they cost their largest; the whole epoch overlaps each
    of them and is added.
    """
    each = [epsilon for window, epsilon in windows.items() if window != WHOLE]
    return max(each, default=Fraction(0)) + windows.get(WHOLE, Fraction(0))


def _head_in(anchor: Path) -> str:
    """Return the head that an anchor holds; that of an empty chain if there is no such file."""
    try:
        return str(json.loads(anchor.read_text(encoding="utf-8"))["head"])
    except FileNotFoundError:
        return START
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise LedgerError(
            f"{anchor}: holds no head of a ledger ({type(error).__name__}); restore it from a copy, never delete it"
        ) from None


class Ledger:
    """One server's ledger in a folder of its own.

    Parameters
    ----------
    folder : Path
        Holds `ledger.jsonl` and the released bytes.
    anchors : list of Path
        Files outside the folder that hold the chain's head.
    budget : Fraction
        Epsilon per user and epoch.
    delta : float
        At which parts are composed.
    simulated : bool
        Whether releases with noise from a seed are allowed; such a ledger never serves production, nor the reverse.
    windows : int
        Of an epoch.
    """

    def __init__(
        self,
        folder: Path,
        anchors: list[Path],
        budget: Fraction,
        delta: float,
        simulated: bool,
        windows: int = WINDOWS,
    ) -> None:
        self.windows = windows
        self.folder = Path(folder)
        self.anchors = [Path(anchor) for anchor in anchors]
        self.budget = Fraction(budget)
        self.delta = delta
        self.simulated = simulated
        self.path = self.folder / "ledger.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)

    def entries(self) -> list[dict]:
        """Return the ledger's lines, after checking that none is missing or changed.

        Raises
        ------
        LedgerError
            If the ledger or an anchor cannot be read, the chain is broken, an anchor is missing or its head is not in
            the chain, or the ledger belongs to the other kind of use.
        """
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        except (OSError, ValueError) as error:
            raise LedgerError(
                f"{self.path}: cannot be read ({error}); nothing is released until the ledger is restored"
            ) from None
        entries = []
        head = START
        for number, line in enumerate(lines, 1):
            try:
                entry = json.loads(line)
                follows = entry["previous"] == head and entry.keys() >= KEYS
            except (ValueError, KeyError, TypeError):
                follows = False
            if not follows:
                raise LedgerError(
                    f"{self.path}: line {number} was changed or lost; nothing is released until the ledger is restored"
                )
            if entry["simulated"] != self.simulated:
                raise LedgerError(
                    f"{self.path}: belongs to a {'simulation' if entry['simulated'] else 'production fleet'}; use"
                    " another ledger"
                )
            head = hashlib.sha256(line.encode()).hexdigest()
            entries.append(entry | {"hash": head})
        heads = {START, *(entry["hash"] for entry in entries)}
        for anchor in self.anchors:
            anchored = _head_in(anchor)
            if anchored == START and len(entries) > 1:
                raise LedgerError(
                    f"{anchor}: is missing, though the ledger has {len(entries)} lines; restore it, or mount the disk"
                    " that holds it"
                )
            if anchored not in heads:
                raise LedgerError(
                    f"{self.path}: {anchor} remembers a longer ledger; it was deleted or replaced by an older copy."
                    " Restore it: a new one would spend the users' budget again"
                )
        return entries

    def spent(self, epoch: int, more: tuple[str, int, Fraction] | None = None) -> float:
        """Return the epsilon, at delta, that users of an epoch have spent; with `more` (part, window, epsilon),
        after that release.

        Raises
        ------
        LedgerError
            As `entries`, or for a window that is none of the epoch's.
        """
        costs: dict[str, dict[int, Fraction]] = {}
        released = [
            (entry["part"], entry["window"], Fraction(entry["epsilon"]))
            for entry in self.entries()
            if entry["epoch"] == epoch
        ]
        for part, window, epsilon in released + ([more] if more else []):
            if window != WHOLE and not 0 <= window < self.windows:
                raise LedgerError(
                    f"window {window} is none of the epoch's: expected 0 to {self.windows - 1}, or {WHOLE} for all"
                )
            windows = costs.setdefault(part, {})
            windows[window] = windows.get(window, Fraction(0)) + epsilon
        return composed_epsilon([_cost(windows) for _, windows in sorted(costs.items())], self.delta)

    def released(self, name: str) -> bytes | None:
        """Return the bytes of an earlier release, None if there is none of that name.

        Raises
        ------
        LedgerError
            As `entries`, or if the stored release is gone or is not the one that was drawn.
        """
        with self._locked():
            return self._stored(name, self._anchored())

    def _anchored(self) -> list[dict]:
        """Return the ledger's lines once each anchor holds the last one's hash; the lock is held."""
        entries = self.entries()
        head = entries[-1]["hash"] if entries else START
        for anchor in self.anchors:
            if _head_in(anchor) != head:
                write_whole(anchor, json.dumps({"head": head, "entries": len(entries)}).encode())
        return entries

    def _stored(self, name: str, entries: list[dict]) -> bytes | None:
        entry = next((entry for entry in entries if entry["release"] == name), None)
        if entry is None:
            return None
        path = self.folder / f"{name}.release"
        content = path.read_bytes() if path.exists() else b""
        if hashlib.sha256(content).hexdigest() != entry["sha256"]:
            raise LedgerError(
                f"{path}: was released before and is gone or changed; it is not drawn again, since two draws average"
                " out the noise"
            )
        return content

    def release(
        self,
        name: str,
        *,
        epoch: int,
        part: str,
        window: int,
        epsilon: Fraction,
        simulated: bool,
        draw: Callable[[], bytes],
        joined: str | None = None,
    ) -> bytes:
        """Return the bytes of a release: those stored under its name, or new ones if the budget allows.

        Parameters
        ----------
        name : str
            Identity of the release: the same request has the same name.
        epoch, part, window
            Whose data it holds. Window -1 is the whole epoch.
        epsilon : Fraction
        simulated : bool
            Whether the noise comes from a seed.
        draw : callable
            Draws noise and returns the release's bytes; runs once per name.
        joined : str or None
            Digest of the epoch's joined reports with their windows. Windows cost their largest epsilon only while each
            report stays in one of them.

        Raises
        ------
        LedgerError
            If the budget does not allow it, the epoch lies before one that was released already, earlier releases of
            it were of other joined reports, the kind of noise is not the ledger's, or a stored release is gone.
        """
        if simulated != self.simulated:
            raise LedgerError(
                "noise from a seed can be foreseen: it is for simulations, and a simulation's ledger takes no other"
            )
        with self._locked():
            entries = self._anchored()
            stored = self.folder / f"{name}.release"
            earlier = self._stored(name, entries)
            if earlier is not None:
                return earlier
            latest = max((entry["epoch"] for entry in entries), default=epoch)
            if epoch < latest:
                raise LedgerError(
                    f"epoch {epoch} lies before epoch {latest}, which was released already; is the clock set back?"
                )
            if any(entry["epoch"] == epoch and entry.get("joined") != joined for entry in entries):
                raise LedgerError(
                    f"epoch {epoch}: earlier releases were of other joined reports, so that one user's report could be"
                    " in two windows; restore the file of joined reports"
                )
            total = self.spent(epoch, (part, window, Fraction(epsilon)))
            if total > float(self.budget) * (1 + 1e-9):
                raise LedgerError(
                    f"epoch {epoch}: releasing {part} of window {window} would bring users to epsilon {total:.4g},"
                    f" beyond their budget of {float(self.budget):g}; wait for the next epoch"
                )
            if (
                not stored.exists()
            ):  # else drawn before a crash that kept it from being entered: those bytes, not new ones
                write_whole(stored, draw())
            content = stored.read_bytes()
            entry = {"epoch": epoch, "part": part, "window": window, "epsilon": str(epsilon), "release": name}
            entry |= {"joined": joined}
            self._append(entry | {"sha256": hashlib.sha256(content).hexdigest()}, entries)
            return content

    def _append(self, entry: dict, entries: list[dict]) -> None:
        stored = self.path.read_bytes() if self.path.exists() else b""
        entry |= {
            "previous": entries[-1]["hash"] if entries else START,
            "simulated": self.simulated,
            "number": len(entries),
        }
        line = json.dumps(entry, sort_keys=True)
        write_whole(self.path, stored + line.encode() + b"\n")
        self._anchored()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the ledger's lock: of two releases racing, the second sees what the first entered."""
        with open(self.folder / "lock", "w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
