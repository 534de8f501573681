"""Mode `share2`: additive secret sharing; a vector as two shares, each alone uniformly random, one for each server.

The first share is an AES-256-CTR keystream (the leader gets its 32-byte key), the second the vector minus it, modulo
2**32. Both are sealed with HPKE (RFC 9180: X25519, HKDF-SHA-256, AES-256-GCM). All of it is the `cryptography`
package's work; ours is the subtraction.
"""

import secrets

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from causeway.fleet.protection.envelope import ReportRefusedError
from causeway.fleet.report_layout import WORD

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
KEY_BYTES = 32


def keystream(key: bytes, cells: int) -> np.ndarray:
    """Expand a key to a share, uint32, shape (cells,): AES-256-CTR over zeros. Each key serves one report."""
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(encryptor.update(bytes(cells * WORD().itemsize)), WORD)


def split(vector: np.ndarray) -> tuple[bytes, bytes]:
    """Return the leader's share of `vector` (uint32, shape (cells,)), as the key that expands to it, and the helper's.

    The key is drawn here, from the operating system, and no parameter sets it: no keystream masks two vectors, and no
    test seed reaches it.
    """
    key = secrets.token_bytes(KEY_BYTES)
    return key, (vector - keystream(key, len(vector))).tobytes()


def expanded(role: str, share: bytes, cells: int) -> np.ndarray:
    """Return a server's share as uint32, shape (cells,); raises `ReportRefusedError` for a wrong length."""
    if len(share) != (KEY_BYTES if role == "leader" else cells * WORD().itemsize):
        raise ReportRefusedError("length")
    return keystream(share, cells) if role == "leader" else np.frombuffer(share, WORD)


def seal(body: bytes, key: X25519PublicKey, info: bytes) -> bytes:
    """Seal bytes for a server, bound to `info`; see `Envelope.hpke_info`."""
    return SUITE.encrypt(body, key, info=info)


def open_sealed(body: bytes, key: X25519PrivateKey, info: bytes) -> bytes:
    """Open what `seal` made.

    Raises
    ------
    ReportRefusedError
        If it was changed, cut, or meant for another server, mode, epoch, token or layout.
    """
    try:
        return SUITE.decrypt(body, key, info=info)
    except (InvalidTag, ValueError):
        raise ReportRefusedError("seal") from None
