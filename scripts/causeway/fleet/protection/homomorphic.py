"""Mode `ahe`: a vector encrypted under a scheme whose ciphertexts can be added (BFV, by TenSEAL); only the sum is ever decrypted.

The leader adds ciphertexts and holds no key; the helper holds the key and sees the sum alone, after the leader put its noise in. Against
leader and helper together it protects nothing.
"""

import warnings

import numpy as np

from causeway.errors import CausewayError
from causeway.fleet.envelope import RefusedError
from causeway.fleet.layout import WORD, Layout

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tenseal

DEGREE = 4096
"""Slots of a ciphertext; with it, TenSEAL's default moduli give 128 bits of security (homomorphicencryption.org standard)."""
PLAIN_MODULUS = 8_589_852_673
"""A 33-bit prime, 1 modulo 2 * DEGREE, which packing vectors into slots needs."""
PLAIN_BITS = 33


def check(layout: Layout, reports: int) -> None:
    """Refuse a fleet whose sums could overflow a slot, or a vector longer than a ciphertext has slots."""
    if layout.cells > DEGREE:
        raise CausewayError(f"the report has {layout.cells} cells, a ciphertext {DEGREE} slots; use fewer kernel cells or bins")
    layout.check_capacity(reports, PLAIN_BITS)


def make_keys() -> tuple[bytes, bytes]:
    """Return the key holder's secret context and the public one that clients and leader get, which holds no secret key."""
    context = tenseal.context(tenseal.SCHEME_TYPE.BFV, poly_modulus_degree=DEGREE, plain_modulus=PLAIN_MODULUS)
    secret = context.serialize(save_secret_key=True)
    context.make_context_public()
    public = context.serialize()
    if tenseal.context_from(public).is_private():
        raise CausewayError("the public context holds the secret key; it must not be published")
    return secret, public


class Encryptor:
    """A client's or leader's side: encrypts vectors of `cells` cells and adds ciphertexts."""

    def __init__(self, public: bytes, cells: int) -> None:
        self.cells = cells
        self._context = tenseal.context_from(public)
        if self._context.is_private():
            raise CausewayError("this context holds the secret key; clients and the leader get the public one")

    def encrypt(self, vector: np.ndarray) -> bytes:
        """Encrypt one report."""
        return tenseal.bfv_vector(self._context, vector.astype(np.int64).tolist()).serialize()

    def load(self, body: bytes) -> "tenseal.BFVVector":
        """Return a ciphertext; raises `RefusedError` for bytes that are none."""
        try:
            found = tenseal.bfv_vector_from(self._context, body)
        except (ValueError, RuntimeError, MemoryError):
            raise RefusedError("ciphertext") from None
        if found.size() != self.cells or len(found.ciphertext()) != 1:
            raise RefusedError("ciphertext")
        return found

    def add(self, sums: bytes | None, body: bytes) -> bytes:
        """Add a ciphertext to a sum of ciphertexts."""
        return body if sums is None else (self.load(sums) + self.load(body)).serialize()

    def add_noise(self, sums: bytes, noise: np.ndarray) -> bytes:
        """Add the leader's noise, encrypted, so that the key holder never sees the plain sum."""
        loaded = self.load(sums)
        return (loaded + tenseal.bfv_vector(self._context, noise.tolist())).serialize()


def decrypt(sums: bytes, secret: bytes, cells: int) -> np.ndarray:
    """Return a decrypted sum: int64, shape (cells,), negative where noise made it so.

    Raises
    ------
    CausewayError
        If the key does not fit or bytes are missing.
    """
    context = tenseal.context_from(secret)
    if not context.is_private():
        raise CausewayError("this context cannot decrypt: it holds no secret key")
    try:
        found = np.array(tenseal.bfv_vector_from(context, sums).decrypt(), np.int64)
    except (ValueError, RuntimeError, MemoryError):
        raise CausewayError("the sum of ciphertexts cannot be decrypted: bytes are missing or the key is another") from None
    if len(found) != cells:
        raise CausewayError(f"the decrypted sum has {len(found)} cells, expected {cells}")
    return np.where(found > PLAIN_MODULUS // 2, found - PLAIN_MODULUS, found)


def modular(vector: np.ndarray) -> np.ndarray:
    """Return a decrypted, not negative sum as words, to compare it with the other modes' sums."""
    return vector.astype(WORD)
