"""One server's part: it stores shares of reports, refuses invalid ones, and adds up those that both servers have.

The two servers, leader and helper, are aggregators as in Prio (Corrigan-Gibbs and Boneh, NSDI 2017) and the IETF's
Distributed Aggregation Protocol; the designer of the fleet is its collector. An aggregator serves one epoch. Windows
are the hours in which reports arrived; a token admits a serial once per epoch, so a user's report is in one window.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from causeway.fleet.protection import secret_sharing
from causeway.fleet.protection.envelope import ReportRefusedError, check_token, decode
from causeway.fleet.report_layout import WORD, ReportLayout

REPEATED = "duplicate of the same share"
"""Reason of a refusal which tells a client that its report, not another one of its token, has arrived."""


class Aggregator:
    """A server's shares of one epoch in mode `share2`.

    Parameters
    ----------
    role : str
        `leader` or `helper`.
    epoch : int
    layout : ReportLayout
    key : X25519PrivateKey
        Opens the shares that clients sealed for this server.
    issuer : Ed25519PublicKey
    """

    mode = "share2"

    def __init__(
        self, role: str, epoch: int, layout: ReportLayout, key: X25519PrivateKey, issuer: Ed25519PublicKey
    ) -> None:
        self.role = role
        self.epoch = epoch
        self.layout = layout
        self._key = key
        self._issuer = issuer
        self.input_shares: dict[bytes, tuple[int, bytes]] = {}
        self.refused: Counter[str] = Counter()

    def receive(self, message: bytes, window: int) -> bytes:
        """Store one share; returns its report's serial.

        Parameters
        ----------
        message : bytes
            An encoded envelope.
        window : int
            In which it arrived.

        Raises
        ------
        ReportRefusedError
            For a message that is malformed, of another epoch, role, mode or layout, without a valid token, a
            duplicate, or not sealed for this server. Refusals are counted by reason; the sum is unchanged.
        """
        try:
            envelope = decode(message)
            for name, expected in (
                ("role", self.role),
                ("mode", self.mode),
                ("epoch", self.epoch),
                ("layout", self.layout.digest),
            ):
                if getattr(envelope, name) != expected:
                    raise ReportRefusedError(name)
            check_token(envelope, self._issuer)
            share = secret_sharing.open_sealed(envelope.body, self._key, envelope.hpke_info)
            if envelope.serial in self.input_shares:
                raise ReportRefusedError(REPEATED if self.input_shares[envelope.serial][1] == share else "duplicate")
            secret_sharing.expanded(self.role, share, self.layout.cells)
        except ReportRefusedError as error:
            self.refused[error.reason] += 1
            raise
        self.input_shares[envelope.serial] = (window, share)
        return envelope.serial

    def forget(self, serial: bytes) -> None:
        """Drop a share that could not be stored."""
        self.input_shares.pop(serial, None)

    @property
    def serials(self) -> frozenset[bytes]:
        """Serials of the shares that arrived."""
        return frozenset(self.input_shares)

    @property
    def windows(self) -> dict[bytes, int]:
        """The window in which each serial arrived; the leader's holds for both servers."""
        return {serial: window for serial, (window, _) in self.input_shares.items()}

    def sums(self, joined: Mapping[bytes, int], windows: int) -> np.ndarray:
        """Return the aggregate share: the sum of the joined reports' shares by window.

        Parameters
        ----------
        joined : mapping of bytes to int
            Serials that both servers have, and their windows; see `join`.
        windows : int

        Returns
        -------
        ndarray of uint32, shape (windows, cells), modulo 2**32; alone, it is uniformly random.
        """
        totals = np.zeros((windows, self.layout.cells), WORD)
        for serial, window in joined.items():
            totals[window] += secret_sharing.expanded(self.role, self.input_shares[serial][1], self.layout.cells)
        return totals


def join(leader: Mapping[bytes, int], helper: Iterable[bytes]) -> dict[bytes, int]:
    """Return the serials that both servers have, with the leader's windows; a share without its counterpart is in
    neither sum.
    """
    return {serial: leader[serial] for serial in helper if serial in leader}


def centred(totals: np.ndarray) -> np.ndarray:
    """Return the centred representatives of sums modulo 2**32, -2**31 to 2**31 - 1.

    Parameters
    ----------
    totals : ndarray of uint32, any shape

    Returns
    -------
    ndarray of int64, of the same shape
    """
    return totals.astype(WORD).view(np.int32).astype(np.int64)
