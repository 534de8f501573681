"""What travels: one message per server, with the token that admits it and nothing that says who sent it or what it counts.

A token is a random serial of one epoch, signed by the issuer, which gives each user a fixed number per epoch however many GPUs they own and
checks identities where they are known anyway. The servers see serials only.
"""

import hashlib
import struct
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from causeway.errors import CausewayError

MAGIC = b"CWF1"
ROLES = ("leader", "helper")
MODES = ("clear", "share2", "ahe", "ldp")
_HEAD = struct.Struct("<4sBBI16s16s64s")
LONGEST_BODY = 1 << 20
SERIAL_BYTES = 16


class RefusedError(CausewayError):
    """A message that a server does not take; `reason` is one of a few words: refusals are counted without keeping what was sent."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"report refused: {reason}")


@dataclass(frozen=True)
class Envelope:
    """One server's half of a report.

    Attributes
    ----------
    role, mode : str
    epoch : int
    serial : bytes
        Of the token; joins the two halves.
    layout : bytes
        Digest of the layout that the vector follows.
    signature : bytes
        The issuer's, over epoch and serial.
    body : bytes
        Sealed for the server.
    """

    role: str
    mode: str
    epoch: int
    serial: bytes
    layout: bytes
    signature: bytes
    body: bytes

    def encoded(self) -> bytes:
        """Return the message's bytes."""
        facts = (ROLES.index(self.role), MODES.index(self.mode), self.epoch, self.serial, self.layout, self.signature)
        return _HEAD.pack(MAGIC, *facts) + self.body

    @property
    def context(self) -> bytes:
        """What the seal is bound to, so that a half cannot be moved to another server, epoch, token or layout."""
        return context_of(self.role, self.mode, self.epoch, self.serial, self.layout)


def context_of(role: str, mode: str, epoch: int, serial: bytes, layout: bytes) -> bytes:
    """Return the seal's context; see `Envelope.context`."""
    return b"|".join([b"causeway-fleet/1", role.encode(), mode.encode(), struct.pack("<I", epoch), serial, layout])


def decode(message: bytes) -> Envelope:
    """Return the envelope of a message; raises `RefusedError` for one that is malformed."""
    if not _HEAD.size <= len(message) <= _HEAD.size + LONGEST_BODY:
        raise RefusedError("length")
    magic, role, mode, epoch, serial, layout, signature = _HEAD.unpack_from(message)
    if magic != MAGIC or role >= len(ROLES) or mode >= len(MODES):
        raise RefusedError("form")
    return Envelope(ROLES[role], MODES[mode], epoch, serial, layout, signature, message[_HEAD.size :])


def _signed(epoch: int, serial: bytes) -> bytes:
    return b"causeway-fleet-token/1" + struct.pack("<I", epoch) + serial


class Issuer:
    """Gives tokens: at most `bound` per user and epoch.

    Parameters
    ----------
    key : Ed25519PrivateKey
    bound : int
        Reports per user and epoch: the sensitivity that the released epsilon counts on.
    given : dict of str to int, or None
        What was given before, as `given` of an earlier issuer.
    """

    def __init__(self, key: Ed25519PrivateKey, bound: int = 1, given: dict[str, int] | None = None) -> None:
        self._key, self.bound = key, bound
        self.given: dict[str, int] = dict(given or {})

    @property
    def public(self) -> Ed25519PublicKey:
        """The key that servers check tokens with."""
        return self._key.public_key()

    def issue(self, user: str, epoch: int, serial: bytes) -> bytes:
        """Sign a serial that the user's client drew; raises `CausewayError` when the user's tokens of the epoch are spent."""
        if len(serial) != SERIAL_BYTES:
            raise CausewayError(f"a serial has {len(serial)} bytes, expected {SERIAL_BYTES}")
        who = hashlib.sha256(f"{epoch}/{user}".encode()).hexdigest()
        if self.given.get(who, 0) >= self.bound:
            raise CausewayError(f"this user has had {self.bound} tokens of epoch {epoch}; wait for the next epoch")
        self.given[who] = self.given.get(who, 0) + 1
        return self._key.sign(_signed(epoch, serial))


def check_token(envelope: Envelope, issuer: Ed25519PublicKey) -> None:
    """Refuse an envelope whose token the issuer did not sign for its epoch."""
    try:
        issuer.verify(envelope.signature, _signed(envelope.epoch, envelope.serial))
    except InvalidSignature:
        raise RefusedError("token") from None
