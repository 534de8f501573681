"""The catalogue: what known applications look like, as clients receive it. Signed, and pinned by its hash.

It holds grams of tokens and no kernel name. Every client gets the same bytes: a catalogue made for one user, which would make that user's
reports speak of what only they run, has another hash than the published one and is refused.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from causeway.errors import CausewayError
from causeway.fleet.tokens import grams_of, tokens_of

FORM = "causeway-fleet-catalogue/1"
OTHER = 0
"""Kernel slot of an application for all kernels beyond its top ones; the top ones follow from 1."""


@dataclass(frozen=True)
class Application:
    """One known application.

    Attributes
    ----------
    name, family, version : str
        As the designer publishes them.
    grams : ndarray of uint64, ascending, unique
        Of the runs it was learnt from.
    kernels : ndarray of uint64, at most `Catalogue.slots - 1`
        Tokens of its kernels with most time, most first.
    """

    name: str
    family: str
    version: str
    grams: np.ndarray
    kernels: np.ndarray


@dataclass(frozen=True)
class Catalogue:
    """Known applications and how a sequence is matched with them.

    Attributes
    ----------
    applications : tuple of Application
    key : bytes
        Of the tokens; part of the catalogue, so no secret: it keeps names out of it, not from whoever can guess them.
    k : int
        Launches per gram.
    threshold, margin : float
        Least score of the best application, and least distance to the second, 0 to 1.
    slots : int
        Kernel cells per application, the one for other kernels included.
    simulated : bool
        Whether this catalogue belongs to a simulation; production clients refuse such.
    """

    applications: tuple[Application, ...]
    key: bytes
    k: int
    threshold: float
    margin: float
    slots: int
    simulated: bool
    extra: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def families(self) -> tuple[str, ...]:
        """Names of the families, in order of first appearance."""
        return tuple(dict.fromkeys(application.family for application in self.applications))

    @cached_property
    def family_of(self) -> np.ndarray:
        """Number of each application's family."""
        number = {family: place for place, family in enumerate(self.families)}
        return np.array([number[application.family] for application in self.applications], np.int64)

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """All grams, ascending; where each one's applications begin (one more than grams); those applications; each gram's weight.

        The weight is log((1 + N) / df): grams that many applications share say little (inverse document frequency, Sparck Jones 1972).
        """
        grams = np.concatenate([application.grams for application in self.applications])
        owners = np.repeat(np.arange(len(self.applications)), [len(application.grams) for application in self.applications])
        order = np.lexsort((owners, grams))
        known, starts = np.unique(grams[order], return_index=True)
        starts = np.append(starts, len(grams))
        weights = np.log((1 + len(self.applications)) / np.diff(starts))
        return known, starts, owners[order], weights

    @property
    def unknown_weight(self) -> float:
        """Weight of a gram that no application has."""
        return float(np.log(1 + len(self.applications)))

    def tokens(self, names: Sequence[str]) -> np.ndarray:
        """Return the tokens of kernel names."""
        return tokens_of(names, self.key)

    def encoded(self) -> bytes:
        """Return the bytes that are signed and published; equal catalogues give equal bytes."""
        return json.dumps(
            {
                "form": FORM,
                "key": self.key.hex(),
                "k": self.k,
                "threshold": self.threshold,
                "margin": self.margin,
                "slots": self.slots,
                "simulated": self.simulated,
                "extra": self.extra,
                "applications": [
                    {
                        "name": application.name,
                        "family": application.family,
                        "version": application.version,
                        "grams": base64.b64encode(application.grams.astype("<u8").tobytes()).decode(),
                        "kernels": base64.b64encode(application.kernels.astype("<u8").tobytes()).decode(),
                    }
                    for application in self.applications
                ],
            },
            sort_keys=True,
        ).encode()


@dataclass(frozen=True)
class Run:
    """One run to learn an application from: names of its launches in order, and their durations in ns."""

    application: str
    family: str
    version: str
    names: Sequence[str]
    durations: np.ndarray


def build(
    runs: Sequence[Run], *, key: bytes, k: int, threshold: float, margin: float, slots: int, simulated: bool, extra: Mapping | None = None
) -> Catalogue:
    """Learn a catalogue from runs; runs of one application are put together. See `Catalogue` for the parameters."""
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.application, []).append(run)
    applications = []
    for name, mates in sorted(grouped.items()):
        grams, spent = [], {}
        for run in mates:
            distinct, codes = np.unique(np.asarray(run.names, dtype=object).astype(str), return_inverse=True)
            tokens = tokens_of(distinct, key)
            grams.append(grams_of(tokens[codes], k))
            for token, time in zip(tokens.tolist(), np.bincount(codes, weights=run.durations, minlength=len(tokens)).tolist(), strict=True):
                spent[token] = spent.get(token, 0.0) + time
        top = sorted(spent, key=lambda token: (-spent[token], token))[: slots - 1]
        known = np.unique(np.concatenate(grams))
        applications.append(Application(name, mates[0].family, mates[0].version, known[known != 0], np.array(top, np.uint64)))
    if not applications:
        raise CausewayError("the catalogue would be empty: no application has a run to learn from")
    return Catalogue(tuple(applications), key, k, threshold, margin, slots, simulated, dict(extra or {}))


def decode(text: bytes) -> Catalogue:
    """Return the catalogue that `Catalogue.encoded` wrote."""
    try:
        read = json.loads(text)
        if read["form"] != FORM:
            raise CausewayError(f"the catalogue has form {read['form']!r}, expected {FORM!r}")
        applications = tuple(
            Application(
                entry["name"],
                entry["family"],
                entry["version"],
                np.frombuffer(base64.b64decode(entry["grams"], validate=True), "<u8"),
                np.frombuffer(base64.b64decode(entry["kernels"], validate=True), "<u8"),
            )
            for entry in read["applications"]
        )
        values = {name: read[name] for name in ("k", "threshold", "margin", "slots", "simulated", "extra")}
        return Catalogue(applications, bytes.fromhex(read["key"]), **values)
    except (ValueError, KeyError, TypeError) as error:
        raise CausewayError(f"the catalogue cannot be read ({type(error).__name__}: {error}); fetch it again") from None


def pin_of(text: bytes) -> str:
    """Return the hash by which a catalogue is published and pinned."""
    return hashlib.sha256(text).hexdigest()


def sign(text: bytes, key: Ed25519PrivateKey) -> bytes:
    """Sign a catalogue (Ed25519)."""
    return key.sign(text)


def accept(text: bytes, signature: bytes, key: Ed25519PublicKey, pin: str, simulation: bool = False) -> Catalogue:
    """Return a catalogue after a client's checks.

    Raises
    ------
    CausewayError
        If the signature or the pinned hash does not fit, or a simulation's catalogue reaches a production client.
    """
    try:
        key.verify(signature, text)
    except InvalidSignature:
        raise CausewayError(
            "the catalogue's signature does not fit the designer's key; it was changed on its way or is not theirs"
        ) from None
    if pin_of(text) != pin:
        raise CausewayError(
            f"the catalogue's hash {pin_of(text)[:16]}... is not the pinned {pin[:16]}...: every client must use the one that is published"
        )
    found = decode(text)
    if found.simulated and not simulation:
        raise CausewayError("the catalogue belongs to a simulation; a production client needs one that was built for use")
    return found
