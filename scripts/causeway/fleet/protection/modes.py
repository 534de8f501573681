"""The four protection modes, interchangeable: each adds up the same reports, one shard of clients at a time, with every
role in this process.

That shows that the sums are right, and their cost, not that two parties did not collude. Keys are drawn anew for
each run, from the system's entropy; no result depends on them.
"""

import functools
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from causeway.core.errors import CausewayError
from causeway.fleet.draws import words
from causeway.fleet.protection import local_dp, secret_sharing
from causeway.fleet.protection.aggregator import Aggregator, join
from causeway.fleet.protection.envelope import SERIAL_BYTES, Envelope, Issuer, hpke_info
from causeway.fleet.protection.ledger import WINDOWS
from causeway.fleet.report_layout import WORD, ReportLayout


@dataclass(frozen=True, kw_only=True)
class Shard:
    """A range of clients' reports.

    Attributes
    ----------
    first : int
        Index of the first report.
    vectors : ndarray of uint32, shape (n, cells)
    windows : ndarray of int64, shape (n,), 0 to WINDOWS - 1
    users : list of str
        To whom the issuer gives tokens.
    """

    first: int
    vectors: np.ndarray
    windows: np.ndarray
    users: list[str]


@dataclass(frozen=True)
class Subtotal:
    """The aggregate of one shard.

    Attributes
    ----------
    arrays : dict of str to ndarray, shape (WINDOWS, cells), (WINDOWS,), or (bytes,) of a ciphertext
        Sums and numbers of reports by name; none belongs to one client alone.
    bytes_per_report : int
        Most that a report took.
    """

    arrays: dict[str, np.ndarray]
    bytes_per_report: int


def clear(shard: Shard, layout: ReportLayout) -> Subtotal:
    """Add the vectors without protection: the reference that the protected modes must equal. Never published."""
    for vector in shard.vectors:
        layout.check(vector)
    return Subtotal(
        {"sums": sums_by_window(shard.vectors, shard.windows), "reports": reports_by_window(shard.windows)},
        layout.cells * WORD().itemsize,
    )


def sums_by_window(vectors: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the vectors' sums by window, modulo 2**32: uint32, shape (WINDOWS, cells).

    Parameters
    ----------
    vectors : ndarray of uint32, shape (n, cells)
    windows : ndarray of int64, shape (n,)
    """
    totals = np.zeros((WINDOWS, vectors.shape[1]), WORD)
    np.add.at(totals, windows, vectors)
    return totals


def reports_by_window(windows: np.ndarray) -> np.ndarray:
    """Return the number of reports by window, int64, shape (WINDOWS,), from `windows`, int64, shape (n,)."""
    return np.bincount(windows, minlength=WINDOWS).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client's side of `share2`.

    Attributes
    ----------
    layout : ReportLayout
    epoch : int
    leader, helper : X25519PublicKey
        For which the shares are sealed.
    """

    layout: ReportLayout
    epoch: int
    leader: X25519PublicKey
    helper: X25519PublicKey

    def messages(
        self, vector: np.ndarray, token: Callable[[bytes], bytes], serial: bytes | None = None
    ) -> tuple[bytes, bytes]:
        """Return the messages of a report to leader and helper.

        Parameters
        ----------
        vector : ndarray of uint32, shape (cells,)
        token : callable
            Has the issuer sign a serial.
        serial : bytes or None
            Of the token; drawn here if None.

        Raises
        ------
        CausewayError
            If the vector exceeds a contribution bound; see `ReportLayout.check`.
        """
        self.layout.check(vector)
        serial = secrets.token_bytes(SERIAL_BYTES) if serial is None else serial
        signature = token(serial)
        for_leader, for_helper = secret_sharing.split(vector)

        def message(role: str, key: X25519PublicKey, share: bytes) -> bytes:
            info = hpke_info(role, "share2", self.epoch, serial, self.layout.digest)
            return Envelope(
                role=role,
                mode="share2",
                epoch=self.epoch,
                serial=serial,
                layout=self.layout.digest,
                signature=signature,
                body=secret_sharing.seal(share, key, info),
            ).encoded()

        return message("leader", self.leader, for_leader), message("helper", self.helper, for_helper)


class Share2:
    """Mode `share2`: every report is split, sealed, opened by both aggregators and joined."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._leader = X25519PrivateKey.generate()
        self._helper = X25519PrivateKey.generate()
        self._issuer = Issuer(Ed25519PrivateKey.generate())

    def shard(self, shard: Shard, layout: ReportLayout) -> Subtotal:
        """Send and add a shard's reports; returns each server's aggregate share."""
        servers = [
            Aggregator(role, self.epoch, layout, key, self._issuer.public)
            for role, key in (("leader", self._leader), ("helper", self._helper))
        ]
        client = Client(
            layout=layout, epoch=self.epoch, leader=self._leader.public_key(), helper=self._helper.public_key()
        )
        sent = 0
        for vector, window, user in zip(shard.vectors, shard.windows.tolist(), shard.users, strict=True):
            messages = client.messages(vector, functools.partial(self._issuer.issue, user, self.epoch))
            for server, message in zip(servers, messages, strict=True):
                server.receive(message, window)
            sent = max(sent, sum(map(len, messages)))
        joined = join(servers[0].windows, servers[1].serials)
        arrays = {server.role: server.sums(joined, WINDOWS) for server in servers}
        return Subtotal(
            arrays | {"reports": np.bincount(list(joined.values()), minlength=WINDOWS).astype(np.int64)}, sent
        )


class Ahe:
    """Mode `ahe`: every report is one ciphertext; the leader adds them by window without a key."""

    def __init__(self, public: bytes, cells: int) -> None:
        from causeway.fleet.protection.homomorphic import Encryptor

        self._encryptor = Encryptor(public, cells)

    def shard(self, shard: Shard, layout: ReportLayout) -> Subtotal:
        """Encrypt and add a shard's reports; returns the windows' ciphertexts as bytes."""
        sums: dict[int, Any] = {}  # vectors of tenseal, which declares no types
        size = 0
        for vector, window in zip(shard.vectors, shard.windows.tolist(), strict=True):
            layout.check(vector)
            body = self._encryptor.encrypt(vector)
            size = max(size, len(body))
            loaded = self._encryptor.load(body)
            sums[window] = sums[window] + loaded if window in sums else loaded
        arrays = {
            f"window_{window:02d}": np.frombuffer(total.serialize(), np.uint8) for window, total in sorted(sums.items())
        }
        return Subtotal(arrays | {"reports": reports_by_window(shard.windows)}, size)


class Ldp:
    """Mode `ldp`: every client randomises its own flags. With a seed they are a simulation's: the same on any number
    of ranks.
    """

    def __init__(self, epsilon: float, seed: int | None) -> None:
        self.epsilon = epsilon
        self._seed = seed

    def shard(self, shard: Shard, layout: ReportLayout) -> Subtotal:
        """Randomise and add a shard's reports."""
        cells = local_dp.cells_of(layout)
        n = len(shard.vectors)
        totals = np.zeros((WINDOWS, cells), WORD)
        for index, (vector, window) in enumerate(zip(shard.vectors, shard.windows.tolist(), strict=True)):
            layout.check(vector)
            if self._seed is None:
                drawn = None
                uniform = secrets.randbelow(1 << 53) * 2.0**-53
            else:
                random_words = words(self._seed, "ldp", shard.first + index, 1, cells // 2 + 2)[0]
                drawn = random_words[:-1].view(np.uint32)[:cells]
                uniform = (int(random_words[-1]) >> 11) * 2.0**-53
            body = local_dp.randomise(local_dp.one_hot(vector, layout, uniform), self.epsilon, drawn)
            totals[window] += local_dp.flags_of(body, cells)
        if n == 0:
            body = b""
        return Subtotal({"sums": totals, "reports": reports_by_window(shard.windows)}, len(body))


def cells_of_part(layout: ReportLayout, part: str) -> np.ndarray:
    """Return the cells of a part of a release: int64, shape (cells of the part,), ascending."""
    return np.concatenate([np.arange(s.cells.start, s.cells.stop) for s in layout.sections if s.part == part])


def check_windows(windows: np.ndarray) -> None:
    """Check `windows`, int64, shape (n,); raises `CausewayError` if one lies outside 0 to `WINDOWS` - 1."""
    if len(windows) and (windows.min() < 0 or windows.max() >= WINDOWS):
        raise CausewayError(f"windows {windows.min()} to {windows.max()} of reports, expected 0 to {WINDOWS - 1}")
