"""One server's part: it stores halves of reports, refuses what it should not take, and adds up those that both servers have.

A collector serves one epoch. Windows are the hours in which reports arrived; the token admits a serial once per epoch, so a user's report
is in one window only.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from causeway.fleet import shares
from causeway.fleet.envelope import RefusedError, check_token, decode
from causeway.fleet.layout import WORD, Layout


class Collector:
    """A server's store of one epoch in mode `share2`.

    Parameters
    ----------
    role : str
        `leader` or `helper`.
    epoch : int
    layout : Layout
    key : X25519PrivateKey
        Opens what clients sealed for this server.
    issuer : Ed25519PublicKey
    """

    mode = "share2"

    def __init__(self, role: str, epoch: int, layout: Layout, key: X25519PrivateKey, issuer: Ed25519PublicKey) -> None:
        self.role, self.epoch, self.layout = role, epoch, layout
        self._key, self._issuer = key, issuer
        self.opened: dict[bytes, tuple[int, bytes]] = {}
        self.refused: Counter[str] = Counter()

    def receive(self, message: bytes, window: int) -> bytes:
        """Take one half; returns its serial.

        Raises
        ------
        RefusedError
            For a message that is malformed, of another epoch, role, mode or layout, without a valid token, seen before, or not sealed
            for this server. Refusals are counted by reason; the sum is unchanged.
        """
        try:
            envelope = decode(message)
            for name, expected in (("role", self.role), ("mode", self.mode), ("epoch", self.epoch), ("layout", self.layout.digest)):
                if getattr(envelope, name) != expected:
                    raise RefusedError(name)
            check_token(envelope, self._issuer)
            if envelope.serial in self.opened:
                raise RefusedError("duplicate")
            opened = shares.unseal(envelope.body, self._key, envelope.context)
            shares.share_of(self.role, opened, self.layout.cells)
        except RefusedError as error:
            self.refused[error.reason] += 1
            raise
        self.opened[envelope.serial] = (window, opened)
        return envelope.serial

    @property
    def serials(self) -> frozenset[bytes]:
        """Serials of the halves that arrived."""
        return frozenset(self.opened)

    @property
    def windows(self) -> dict[bytes, int]:
        """The window in which each serial arrived; the leader's word holds for both servers."""
        return {serial: window for serial, (window, _) in self.opened.items()}

    def sums(self, joined: Mapping[bytes, int], windows: int) -> np.ndarray:
        """Return the sum of the joined reports' shares by window: words, shape (windows, cells), modulo 2**32; alone, it says nothing."""
        totals = np.zeros((windows, self.layout.cells), WORD)
        for serial, window in joined.items():
            totals[window] += shares.share_of(self.role, self.opened[serial][1], self.layout.cells)
        return totals


def join(leader: Mapping[bytes, int], helper: Iterable[bytes]) -> dict[bytes, int]:
    """Return the serials that both servers have, with the leader's windows; halves of dropped reports are in nobody's sum."""
    return {serial: leader[serial] for serial in helper if serial in leader}


def signed(totals: np.ndarray) -> np.ndarray:
    """Return sums modulo 2**32 as int64: the upper half of the range stands for negative numbers."""
    return totals.astype(WORD).view(np.int32).astype(np.int64)
