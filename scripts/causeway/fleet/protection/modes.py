"""The four interchangeable ways of adding up the same reports, each for one shard of clients with every role in this process.

It shows that the sums are right and what they cost, not that two parties did not collude. Keys are drawn anew for each run, from the
system's entropy; no result depends on them.
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from causeway.errors import CausewayError
from causeway.fleet import local, shares
from causeway.fleet.collector import Collector, join
from causeway.fleet.draws import words
from causeway.fleet.envelope import SERIAL_BYTES, Envelope, Issuer
from causeway.fleet.layout import TRAFFIC, WORD, Layout

WINDOWS = 24
"""Windows of an epoch: the hours of a day."""


@dataclass(frozen=True)
class Shard:
    """Some clients' reports.

    Attributes
    ----------
    first : int
        Number of the first report.
    vectors : ndarray of uint32, shape (n, cells)
    windows : ndarray of int64, shape (n,)
    users : list of str
        Who the issuer gives tokens to.
    """

    first: int
    vectors: np.ndarray
    windows: np.ndarray
    users: list[str]


@dataclass(frozen=True)
class Subtotal:
    """What one shard leaves: arrays and bytes by name, none of one client alone, and the bytes that a report took."""

    arrays: dict[str, np.ndarray]
    bytes_per_report: int


def clear(shard: Shard, layout: Layout) -> Subtotal:
    """Add the vectors as they are: the oracle that the protected modes must equal. Never published."""
    for vector in shard.vectors:
        layout.check(vector)
    return Subtotal({"sums": by_window(shard.vectors, shard.windows), "reports": arrived(shard.windows)}, layout.cells * WORD().itemsize)


def by_window(vectors: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Return the vectors' sums by window, modulo 2**32."""
    totals = np.zeros((WINDOWS, vectors.shape[1]), WORD)
    np.add.at(totals, windows, vectors)
    return totals


def arrived(windows: np.ndarray) -> np.ndarray:
    """Return the number of reports by window."""
    return np.bincount(windows, minlength=WINDOWS).astype(np.int64)


@dataclass(frozen=True)
class Client:
    """A client's side of `share2`: what it needs to know to send a report."""

    layout: Layout
    epoch: int
    leader: object
    helper: object

    def messages(self, vector: np.ndarray, token: Callable[[bytes], bytes], serial: bytes | None = None) -> tuple[bytes, bytes]:
        """Return the two messages of a report; `token` asks the issuer to sign a serial, drawn here unless given."""
        self.layout.check(vector)
        serial = secrets.token_bytes(SERIAL_BYTES) if serial is None else serial
        signature = token(serial)
        made = []
        for role, key, half in zip(("leader", "helper"), (self.leader, self.helper), shares.split(vector), strict=True):
            plain = Envelope(role, "share2", self.epoch, serial, self.layout.digest, signature, b"")
            made.append(
                Envelope(role, "share2", self.epoch, serial, self.layout.digest, signature, shares.seal(half, key, plain.context)).encoded()
            )
        return made[0], made[1]


class Share2:
    """Mode `share2`: every report is split, sealed, opened by both collectors and joined."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self._leader, self._helper = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        self._issuer = Issuer(Ed25519PrivateKey.generate())

    def shard(self, shard: Shard, layout: Layout) -> Subtotal:
        """Send and add a shard's reports; returns each server's sum of shares."""
        servers = [
            Collector(role, self.epoch, layout, key, self._issuer.public)
            for role, key in (("leader", self._leader), ("helper", self._helper))
        ]
        client, sent = Client(layout, self.epoch, self._leader.public_key(), self._helper.public_key()), 0
        for vector, window, user in zip(shard.vectors, shard.windows.tolist(), shard.users, strict=True):
            messages = client.messages(vector, lambda serial, user=user: self._issuer.issue(user, self.epoch, serial))
            for server, message in zip(servers, messages, strict=True):
                server.receive(message, window)
            sent = max(sent, sum(map(len, messages)))
        joined = join(servers[0].windows, servers[1].serials)
        arrays = {server.role: server.sums(joined, WINDOWS) for server in servers}
        return Subtotal(arrays | {"reports": np.bincount(list(joined.values()), minlength=WINDOWS).astype(np.int64)}, sent)


class Ahe:
    """Mode `ahe`: every report is one ciphertext; the leader adds them by window without a key."""

    def __init__(self, public: bytes, cells: int) -> None:
        from causeway.fleet.homomorphic import Encryptor

        self._encryptor = Encryptor(public, cells)

    def shard(self, shard: Shard, layout: Layout) -> Subtotal:
        """Encrypt and add a shard's reports; returns the windows' ciphertexts as bytes."""
        sums: dict[int, object] = {}
        size = 0
        for vector, window in zip(shard.vectors, shard.windows.tolist(), strict=True):
            layout.check(vector)
            body = self._encryptor.encrypt(vector)
            size = max(size, len(body))
            loaded = self._encryptor.load(body)
            sums[window] = sums[window] + loaded if window in sums else loaded
        arrays = {f"window_{window:02d}": np.frombuffer(found.serialize(), np.uint8) for window, found in sorted(sums.items())}
        return Subtotal(arrays | {"reports": arrived(shard.windows)}, size)


class Ldp:
    """Mode `ldp`: every client randomises its own flags. With a seed they are a simulation's: the same on any number of ranks."""

    def __init__(self, epsilon: float, seed: int | None) -> None:
        self.epsilon, self._seed = epsilon, seed

    def shard(self, shard: Shard, layout: Layout) -> Subtotal:
        """Randomise and add a shard's reports."""
        cells, n = local.cells_of(layout), len(shard.vectors)
        totals = np.zeros((WINDOWS, cells), WORD)
        for place, (vector, window) in enumerate(zip(shard.vectors, shard.windows.tolist(), strict=True)):
            layout.check(vector)
            if self._seed is None:
                drawn, chance = None, secrets.randbelow(1 << 53) * 2.0**-53
            else:
                halves = words(self._seed, "ldp", shard.first + place, 1, cells // 2 + 2)[0]
                drawn, chance = halves[:-1].view(np.uint32)[:cells], (int(halves[-1]) >> 11) * 2.0**-53
            body = local.randomise(local.one_hot(vector, layout, chance), self.epsilon, drawn)
            totals[window] += local.flags_of(body, cells)
        if n == 0:
            body = b""
        return Subtotal({"sums": totals, "reports": arrived(shard.windows)}, len(body))


def cells_of_part(layout: Layout, part: str) -> np.ndarray:
    """Return the cells of a part of a release, ascending."""
    return np.concatenate([np.arange(s.cells.start, s.cells.stop) for s in layout.sections if s.part == part])


def check_windows(windows: np.ndarray) -> None:
    """Refuse windows that the epoch does not have."""
    if len(windows) and (windows.min() < 0 or windows.max() >= WINDOWS):
        raise CausewayError(f"windows {windows.min()} to {windows.max()} of reports, expected 0 to {WINDOWS - 1}")


__all__ = ["TRAFFIC", "Ahe", "Client", "Ldp", "Shard", "Share2", "Subtotal", "cells_of_part", "check_windows", "clear"]
