"""Mode `ahe`: a vector under additively homomorphic encryption (BFV, by TenSEAL); only the noisy sum is ever decrypted.

The leader adds ciphertexts and holds no key; the helper holds the key and sees the sum alone, after the leader added
its noise. Leader and helper together can decrypt every report.
"""

import warnings

import numpy as np

from causeway.core.errors import CausewayError
from causeway.fleet.protection.envelope import ReportRefusedError
from causeway.fleet.report_layout import ReportLayout

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import tenseal

DEGREE = 4096
"""Slots of a ciphertext; with it, TenSEAL's default moduli give 128 bits of security (homomorphicencryption.org
standard).
"""
PLAIN_MODULUS = 8_589_852_673
"""A 33-bit prime, 1 modulo 2 * DEGREE, which packing vectors into slots needs."""
PLAIN_BITS = 33


def check(layout: ReportLayout, reports: int) -> None:
    """Refuse a fleet whose sums could overflow a slot, or a vector longer than a ciphertext has slots.

    Raises
    ------
    CausewayError
        In both cases.
    """
    if layout.cells > DEGREE:
        raise CausewayError(
            f"the report has {layout.cells} cells, a ciphertext {DEGREE} slots; use fewer kernel cells or bins"
        )
    layout.check_capacity(reports, PLAIN_BITS)


def make_keys() -> tuple[bytes, bytes]:
    """Return the key holder's secret context and the public one of clients and leader, which holds no secret key.

    Raises
    ------
    CausewayError
        If the public context holds the secret key.
    """
    context = tenseal.context(tenseal.SCHEME_TYPE.BFV, poly_modulus_degree=DEGREE, plain_modulus=PLAIN_MODULUS)
    secret = context.serialize(save_secret_key=True)
    context.make_context_public()
    public = context.serialize()
    if tenseal.context_from(public).is_private():
        raise CausewayError("the public context holds the secret key; it must not be published")
    return secret, public


class Encryptor:
    """A client's or leader's side: encrypts vectors of `cells` cells and adds ciphertexts.

    Parameters
    ----------
    public : bytes
        The public context.
    cells : int

    Raises
    ------
    CausewayError
        If the context holds the secret key.
    """

    def __init__(self, public: bytes, cells: int) -> None:
        self.cells = cells
        self._context = tenseal.context_from(public)
        if self._context.is_private():
            raise CausewayError("this context holds the secret key; clients and the leader get the public one")

    def encrypt(self, vector: np.ndarray) -> bytes:
        """Encrypt one report, `vector`: uint32, shape (cells,)."""
        return tenseal.bfv_vector(self._context, vector.astype(np.int64).tolist()).serialize()

    def load(self, body: bytes) -> "tenseal.BFVVector":
        """Return a ciphertext; raises `ReportRefusedError` for other bytes."""
        try:
            ciphertext = tenseal.bfv_vector_from(self._context, body)
        except (ValueError, RuntimeError, MemoryError):
            raise ReportRefusedError("ciphertext") from None
        if ciphertext.size() != self.cells or len(ciphertext.ciphertext()) != 1:
            raise ReportRefusedError("ciphertext")
        return ciphertext

    def add(self, sums: bytes | None, body: bytes) -> bytes:
        """Add a ciphertext to a sum of ciphertexts."""
        return body if sums is None else (self.load(sums) + self.load(body)).serialize()

    def add_noise(self, sums: bytes, noise: np.ndarray) -> bytes:
        """Add the leader's `noise`, int64, shape (cells,), encrypted: the key holder never sees the exact sum."""
        loaded = self.load(sums)
        return (loaded + tenseal.bfv_vector(self._context, noise.tolist())).serialize()


def decrypt(sums: bytes, secret: bytes, cells: int) -> np.ndarray:
    """Return a decrypted sum: int64, shape (cells,), negative where noise made it so.

    Raises
    ------
    CausewayError
        If the key is another, or bytes are missing.
    """
    context = tenseal.context_from(secret)
    if not context.is_private():
        raise CausewayError("this context cannot decrypt: it holds no secret key")
    try:
        decrypted = np.array(tenseal.bfv_vector_from(context, sums).decrypt(), np.int64)
    except (ValueError, RuntimeError, MemoryError):
        raise CausewayError(
            "the sum of ciphertexts cannot be decrypted: bytes are missing or the key is another"
        ) from None
    if len(decrypted) != cells:
        raise CausewayError(f"the decrypted sum has {len(decrypted)} cells, expected {cells}")
    return np.where(decrypted > PLAIN_MODULUS // 2, decrypted - PLAIN_MODULUS, decrypted)
