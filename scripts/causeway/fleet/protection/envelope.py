"""The messages of clients: one per server, with the token that admits it; they show neither sender nor counts.

A token is a random serial of one epoch, signed by the issuer, which gives each user a fixed number per epoch however
many GPUs they own, and checks identities where they are known anyway. The servers see serials only.
"""

import hashlib
import struct
import unicodedata
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from causeway.core.errors import CausewayError

MAGIC = b"CWF1"
ROLES = ("leader", "helper")
MODES = ("clear", "share2", "ahe", "ldp")
_HEAD = struct.Struct("<4sBBI16s16s64s")
LONGEST_BODY = 1 << 20
SERIAL_BYTES = 16
SIGNATURE_BYTES = 64


class ReportRefusedError(CausewayError):
    """A message that a server refuses; `reason` is one of a few words, so that refusals are counted without keeping
    messages.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"report refused: {reason}")


@dataclass(frozen=True, kw_only=True)
class Envelope:
    """One server's share of a report, sealed.

    Attributes
    ----------
    role, mode : str
    epoch : int
    serial : bytes
        Of the token; joins the two shares.
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
    def hpke_info(self) -> bytes:
        """HPKE's `info`: binds the seal to server, mode, epoch, token and layout, so that a share cannot be moved."""
        return hpke_info(self.role, self.mode, self.epoch, self.serial, self.layout)


def hpke_info(role: str, mode: str, epoch: int, serial: bytes, layout: bytes) -> bytes:
    """Return the seal's `info`; see `Envelope.hpke_info`."""
    return b"|".join([b"causeway-fleet/1", role.encode(), mode.encode(), struct.pack("<I", epoch), serial, layout])


def decode(message: bytes) -> Envelope:
    """Return the envelope of a message; raises `ReportRefusedError` for one that is malformed."""
    if not _HEAD.size <= len(message) <= _HEAD.size + LONGEST_BODY:
        raise ReportRefusedError("length")
    magic, role, mode, epoch, serial, layout, signature = _HEAD.unpack_from(message)
    if magic != MAGIC or role >= len(ROLES) or mode >= len(MODES):
        raise ReportRefusedError("form")
    return Envelope(
        role=ROLES[role],
        mode=MODES[mode],
        epoch=epoch,
        serial=serial,
        layout=layout,
        signature=signature,
        body=message[_HEAD.size :],
    )


def _token_message(epoch: int, serial: bytes) -> bytes:
    """Return the bytes that the issuer signs."""
    return b"causeway-fleet-token/1" + struct.pack("<I", epoch) + serial


class Issuer:
    """Issues tokens: at most `per_user` for a user and epoch.

    Parameters
    ----------
    key : Ed25519PrivateKey
    per_user : int
        Contribution bound in reports per user and epoch; the released epsilon holds for one.
    issued : dict of str to int, or None
        How many each user has had, by hash of user and epoch: `issued` of an earlier issuer.
    """

    def __init__(self, key: Ed25519PrivateKey, per_user: int = 1, issued: dict[str, int] | None = None) -> None:
        self._key = key
        self.per_user = per_user
        self.issued: dict[str, int] = dict(issued or {})

    @property
    def public(self) -> Ed25519PublicKey:
        """The key that servers check tokens with."""
        return self._key.public_key()

    def issue(self, user: str, epoch: int, serial: bytes) -> bytes:
        """Sign a serial that the user's client drew.

        Raises
        ------
        CausewayError
            If the user's tokens of the epoch are spent, the user has no name, the epoch is no number of four bytes, or
            the serial has a wrong length.
        """
        if len(serial) != SERIAL_BYTES:
            raise CausewayError(f"a serial has {len(serial)} bytes, expected {SERIAL_BYTES}")
        if not 0 <= epoch < 1 << 32:
            raise CausewayError(f"epoch {epoch} is none; expected a number from 0 to {(1 << 32) - 1}")
        try:
            # the same letters in another form of Unicode are the same user
            stripped = unicodedata.normalize("NFC", user).strip()
            name = stripped.encode()
        except UnicodeEncodeError:
            raise CausewayError("the user's name is no UTF-8; give it as the issuer's directory has it") from None
        if any(unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") for letter in stripped):
            raise CausewayError(
                "the user's name holds a character that cannot be seen; give it as the issuer's directory has it"
            )
        if not name:
            raise CausewayError("the user's name is empty; give it as the issuer's directory has it")
        who = hashlib.sha256(f"{epoch}/".encode() + name).hexdigest()
        if self.issued.get(who, 0) >= self.per_user:
            raise CausewayError(f"this user has had {self.per_user} tokens of epoch {epoch}; wait for the next epoch")
        self.issued[who] = self.issued.get(who, 0) + 1
        return self._key.sign(_token_message(epoch, serial))


def check_token(envelope: Envelope, issuer: Ed25519PublicKey) -> None:
    """Refuse an envelope: raises `ReportRefusedError` if the issuer did not sign its token for its epoch."""
    try:
        issuer.verify(envelope.signature, _token_message(envelope.epoch, envelope.serial))
    except InvalidSignature:
        raise ReportRefusedError("token") from None
