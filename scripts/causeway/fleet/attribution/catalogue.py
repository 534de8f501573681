"""The catalogue: fingerprints of known applications, as clients receive it. Signed, and pinned by its hash.

It holds k-grams of tokens and no kernel name. Every client gets the same bytes: a catalogue made for one user, which
would single out that user's applications, has another hash than the published one and is refused.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from causeway.core.errors import CausewayError
from causeway.fleet.attribution.tokens import grams_of, tokens_of
from causeway.fleet.report_layout import ReportLayout, make_layout

FORMAT = "causeway-fleet-catalogue/1"
OTHER = 0
"""Kernel cell of an application for all kernels beyond its top ones; the top ones follow from 1."""


@dataclass(frozen=True, kw_only=True)
class CatalogueEntry:
    """One known application.

    Attributes
    ----------
    name, family, version : str
        As the designer publishes them.
    grams : ndarray of uint64, shape (n,), ascending, unique
        Of the runs it was learnt from.
    kernels : ndarray of uint64, shape (k,), k at most `Catalogue.slots - 1`
        Tokens of its kernels with most time, most first.
    """

    name: str
    family: str
    version: str
    grams: np.ndarray
    kernels: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Known applications and the parameters of attribution.

    Attributes
    ----------
    applications : tuple of CatalogueEntry
    key : bytes
        HMAC key of the tokens; part of the catalogue, so no secret: a name that can be guessed can be checked.
    k : int
        Launches per gram.
    threshold, margin : float
        Least score of the best application, and least distance to the second, 0 to 1.
    slots : int
        Kernel cells per application, the one for other kernels included.
    simulated : bool
        Whether this catalogue belongs to a simulation; production clients refuse such.
    extra : mapping of str to object
        Further facts to publish.
    """

    applications: tuple[CatalogueEntry, ...]
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
        """Index of each application's family: ndarray of int64, shape (applications,)."""
        index_of = {family: index for index, family in enumerate(self.families)}
        return np.array([index_of[application.family] for application in self.applications], np.int64)

    @cached_property
    def inverted_index(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Postings of all grams: which applications have each.

        Returns
        -------
        grams : ndarray of uint64, shape (n,), ascending
        starts : ndarray of int64, shape (n + 1,)
            Where each gram's postings begin.
        postings : ndarray of int64, shape (starts[-1],)
            Indices of applications, ascending within a gram.
        weights : ndarray of float64, shape (n,)
            Inverse document frequency, log((1 + N) / df) (Sparck Jones 1972): grams that many applications share
            identify none.
        """
        grams = np.concatenate([application.grams for application in self.applications])
        owners = np.repeat(
            np.arange(len(self.applications)), [len(application.grams) for application in self.applications]
        )
        order = np.lexsort((owners, grams))
        distinct, starts = np.unique(grams[order], return_index=True)
        starts = np.append(starts, len(grams))
        weights = np.log((1 + len(self.applications)) / np.diff(starts))
        return distinct, starts, owners[order], weights

    @property
    def unknown_weight(self) -> float:
        """Inverse document frequency of a gram that no application has."""
        return float(np.log(1 + len(self.applications)))

    def tokens(self, names: Sequence[str]) -> np.ndarray:
        """Return the tokens of kernel names: uint64, shape (names,); see `tokens_of`."""
        return tokens_of(names, self.key)

    def encoded(self) -> bytes:
        """Return the bytes that are signed and published; equal catalogues give equal bytes."""
        return json.dumps(
            {
                "form": FORMAT,
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


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """One run to learn an application from.

    Attributes
    ----------
    application, family, version : str
    names : sequence of str
        Kernel names of its launches, in order.
    durations : ndarray of float64, shape (launches,), ns
    """

    application: str
    family: str
    version: str
    names: Sequence[str]
    durations: np.ndarray


def build(
    runs: Sequence[TrainingRun],
    *,
    key: bytes,
    k: int,
    threshold: float,
    margin: float,
    slots: int,
    simulated: bool,
    extra: Mapping | None = None,
) -> Catalogue:
    """Learn a catalogue from runs; runs of one application are merged. See `Catalogue` for the parameters.

    Raises
    ------
    CausewayError
        If there is no run.
    """
    grouped: dict[str, list[TrainingRun]] = {}
    for run in runs:
        grouped.setdefault(run.application, []).append(run)
    applications = []
    for name, learnt in sorted(grouped.items()):
        grams = []
        time_of: dict[int, float] = {}
        for run in learnt:
            distinct, codes = np.unique(np.asarray(run.names, dtype=object).astype(str), return_inverse=True)
            tokens = tokens_of(distinct, key)
            grams.append(grams_of(tokens[codes], k))
            for token, time in zip(
                tokens.tolist(), np.bincount(codes, weights=run.durations, minlength=len(tokens)).tolist(), strict=True
            ):
                time_of[token] = time_of.get(token, 0.0) + time
        top = sorted(time_of, key=lambda token: (-time_of[token], token))[: slots - 1]
        own_grams = np.unique(np.concatenate(grams))
        applications.append(
            CatalogueEntry(
                name=name,
                family=learnt[0].family,
                version=learnt[0].version,
                grams=own_grams[own_grams != 0],
                kernels=np.array(top, np.uint64),
            )
        )
    if not applications:
        raise CausewayError("the catalogue would be empty: no application has a run to learn from")
    return Catalogue(
        applications=tuple(applications),
        key=key,
        k=k,
        threshold=threshold,
        margin=margin,
        slots=slots,
        simulated=simulated,
        extra=dict(extra or {}),
    )


def decode(text: bytes) -> Catalogue:
    """Return the catalogue that `Catalogue.encoded` wrote.

    Raises
    ------
    CausewayError
        If the bytes are not a catalogue of this format.
    """
    try:
        read = json.loads(text)
        if read["form"] != FORMAT:
            raise CausewayError(f"the catalogue has form {read['form']!r}, expected {FORMAT!r}")
        applications = tuple(
            CatalogueEntry(
                name=entry["name"],
                family=entry["family"],
                version=entry["version"],
                grams=np.frombuffer(base64.b64decode(entry["grams"], validate=True), "<u8"),
                kernels=np.frombuffer(base64.b64decode(entry["kernels"], validate=True), "<u8"),
            )
            for entry in read["applications"]
        )
        values = {name: read[name] for name in ("k", "threshold", "margin", "slots", "simulated", "extra")}
        return Catalogue(applications=applications, key=bytes.fromhex(read["key"]), **values)
    except (ValueError, KeyError, TypeError) as error:
        raise CausewayError(f"the catalogue cannot be read ({type(error).__name__}: {error}); fetch it again") from None


def layout_of(catalogue: Catalogue, settings: Mapping) -> ReportLayout:
    """Return the layout of the reports of a catalogue's clients.

    Parameters
    ----------
    catalogue : Catalogue
    settings : mapping
        `fleet` of the configuration.
    """
    return make_layout(
        len(catalogue.applications), settings["clusters"], catalogue.slots, settings["epsilon"], settings["clips"]
    )


def digest_of(text: bytes) -> str:
    """Return the SHA-256 by which a catalogue is published and pinned."""
    return hashlib.sha256(text).hexdigest()


def sign(text: bytes, key: Ed25519PrivateKey) -> bytes:
    """Sign a catalogue (Ed25519)."""
    return key.sign(text)


def verified(text: bytes, signature: bytes, key: Ed25519PublicKey, pin: str, simulation: bool = False) -> Catalogue:
    """Return a catalogue after a client's checks.

    Raises
    ------
    CausewayError
        If the signature or the pinned hash does not match, or a simulation's catalogue reaches a production client.
    """
    try:
        key.verify(signature, text)
    except InvalidSignature:
        raise CausewayError(
            "the catalogue's signature does not match the designer's key; it was changed on its way or is not theirs"
        ) from None
    if digest_of(text) != pin:
        raise CausewayError(
            f"the catalogue's hash {digest_of(text)[:16]}... is not the pinned {pin[:16]}...: every client must use the"
            " one that is published"
        )
    catalogue = decode(text)
    if catalogue.simulated and not simulation:
        raise CausewayError(
            "the catalogue belongs to a simulation; a production client needs one that was built for use"
        )
    return catalogue


def read_verified(folder: Path, pin: str, *, simulation: bool = False) -> Catalogue:
    """Read `catalogue.json`, `catalogue.sig` and `designer.pub` of a folder; raises `CausewayError` if they cannot be
    read, and as `verified`.
    """
    try:
        key = Ed25519PublicKey.from_public_bytes((folder / "designer.pub").read_bytes())
        text = (folder / "catalogue.json").read_bytes()
        signature = (folder / "catalogue.sig").read_bytes()
    except (OSError, ValueError) as error:
        raise CausewayError(f"{folder}: no readable catalogue with signature and key ({error})") from None
    return verified(text, signature, key, pin, simulation)
