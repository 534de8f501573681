"""Mode `share2`: a vector as two shares, each of which alone is uniformly random, sealed for one server each.

The first share is an AES-256-CTR keystream (the leader gets its 32-byte key), the second the vector minus it, modulo 2**32. Both are sealed
with HPKE (RFC 9180: X25519, HKDF-SHA-256, AES-256-GCM). All of it is the `cryptography` package's work; ours is the subtraction.
"""

import secrets

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from causeway.fleet.envelope import RefusedError
from causeway.fleet.layout import WORD

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
KEY_BYTES = 32


def keystream(key: bytes, cells: int) -> np.ndarray:
    """Return the share that a key stands for: AES-256-CTR over zeros from counter 0. Each key is for one report."""
    encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
    return np.frombuffer(encryptor.update(bytes(cells * WORD().itemsize)), WORD)


def split(vector: np.ndarray) -> tuple[bytes, bytes]:
    """Return the leader's key and the helper's share of a vector.

    The key is drawn here, from the operating system, and can be given from nowhere else: no keystream masks two vectors, and no test seed
    reaches it.
    """
    key = secrets.token_bytes(KEY_BYTES)
    return key, (vector - keystream(key, len(vector))).tobytes()


def share_of(role: str, opened: bytes, cells: int) -> np.ndarray:
    """Return the share that a server opened; raises `RefusedError` for one of the wrong length."""
    if len(opened) != (KEY_BYTES if role == "leader" else cells * WORD().itemsize):
        raise RefusedError("length")
    return keystream(opened, cells) if role == "leader" else np.frombuffer(opened, WORD)


def seal(body: bytes, key: X25519PublicKey, context: bytes) -> bytes:
    """Seal bytes for a server, bound to a context."""
    return SUITE.encrypt(body, key, info=context)


def unseal(body: bytes, key: X25519PrivateKey, context: bytes) -> bytes:
    """Open what `seal` made; raises `RefusedError` if it was changed, cut, or meant for another server, epoch, token or layout."""
    try:
        return SUITE.decrypt(body, key, info=context)
    except (InvalidTag, ValueError):
        raise RefusedError("seal") from None
