"""Attacks on a simulated fleet, measured: re-identification, linkage, guessed names.

Each attack names its expected result, fixed before it ran; `held` is whether the result is as expected. For attacks
that this design does not stop, the expected result is the damage itself.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from causeway.core.logs import LOG
from causeway.fleet.attribution.attribution import cluster
from causeway.fleet.attribution.catalogue import Catalogue
from causeway.fleet.attribution.tokens import tokens_of
from causeway.fleet.protection.secret_sharing import split
from causeway.fleet.report_layout import WORD


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack and its result.

    Attributes
    ----------
    group : int
        Number in the list of bad inputs of `docs/fleet.md`.
    name, expected : str
    held : bool or None
        Whether the result is as expected; None where it could not have been seen otherwise.
    figures : dict of str to float
    """

    group: int
    name: str
    expected: str
    held: bool | None
    figures: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict:
        """Return it for a JSON document."""
        return asdict(self)


def dictionary(catalogue: Catalogue, names: list[str]) -> Attack:
    """Guess kernel names against the catalogue's tokens, with the key that every client has."""
    cells = {int(token) for entry in catalogue.applications for token in entry.kernels}
    guessed = cells & {int(token) for token in tokens_of(names, catalogue.key)}
    blind = cells & {int(token) for token in tokens_of(names, hashlib.sha256(b"another key").digest())}
    share = len(guessed) / max(len(cells), 1)
    figures = {
        "tokens": float(len(cells)),
        "recovered": share,
        "recovered_without_key": len(blind) / max(len(cells), 1),
    }
    held = not blind
    expected = (
        "with the key, which all clients have, names that can be guessed are found in the catalogue, which is public;"
        " without it none"
    )
    return Attack(
        group=8, name="dictionary attack on the catalogue's tokens", expected=expected, held=held, figures=figures
    )


def linkage(catalogue: Catalogue, sequences: np.ndarray, clusters: int, keys: Sequence[bytes]) -> Attack:
    """Link the anonymous clusters of unknown applications from day to day, if an attacker saw them; no server does.

    A cluster carries at most log2(clusters) bits; with a new key each day it agrees as often as chance.

    Parameters
    ----------
    catalogue : Catalogue
    sequences : ndarray of uint64, shape (n, launches)
        Tokens, one row per application: several rows of one application would share their clusters.
    clusters : int
    keys : sequence of bytes
        The epoch keys of successive days.
    """
    days = np.array([[cluster(tokens, catalogue, key, clusters) for tokens in sequences] for key in keys]).reshape(
        len(keys), -1
    )
    same = days[1:] == days[:-1]
    rate = float(same.mean()) if same.size else 0.0
    limit = 1 / clusters + 4 * math.sqrt(1 / clusters * (1 - 1 / clusters) / max(same.size, 1))
    figures = {"pairs_of_days": float(same.size), "same_slot": rate, "chance": 1 / clusters}
    return Attack(
        group=8,
        name="linkage of anonymous clusters from day to day",
        expected="slots agree as often as chance",
        held=rate <= limit,
        figures=figures,
    )


def reidentification(vectors: np.ndarray, rng: np.random.Generator) -> Attack:
    """Assign the helper's shares to users: an attacker that knows every vector and sees one server's store.

    Its best strategy is to compare the opened share with each vector; a share is uniformly random, so it succeeds as
    often as chance.

    Parameters
    ----------
    vectors : ndarray of uint32, shape (n, cells)
    rng : Generator
        Of the order of the shares.
    """
    n = len(vectors)
    right = 0
    for index in rng.permutation(n).tolist():
        share = np.frombuffer(split(vectors[index])[1], WORD)
        distance = np.minimum(share - vectors, vectors - share).astype(np.float64).sum(1)
        right += int(np.argmin(distance)) == index
    limit = 1 / n + 5 / n  # the hits of a blind guess are Poisson with mean 1: more than 6 occur once in ten thousand
    LOG.info("re-identification from one server's store: %d of %d", right, n)
    figures = {"chance": 1 / n, "at_most": limit, "reports": float(n)}
    return Attack(
        group=8,
        name="re-identification from one server's store",
        expected="as often as chance",
        held=right / n <= limit,
        figures=figures,
    )


def summary(attacks: list[Attack], facts: Mapping) -> dict:
    """Return the document that `fleet_attacks.schema.json` describes."""
    return dict(facts) | {
        "attacks": [attack.as_dict() for attack in attacks],
        "all_held": all(attack.held is True for attack in attacks),
    }
