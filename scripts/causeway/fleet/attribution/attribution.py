"""Which application a sequence of launches comes from, decided on the client: one of the catalogue, or none.

Score of an application: the weight of the sequence's grams that it has, over the weight of all grams of the sequence (idf-weighted
containment). It is taken if its score reaches the threshold and leads the second by the margin; else the sequence is of an unknown
application and goes to an anonymous cluster.
"""

from dataclasses import dataclass

import numpy as np
from datasketch import MinHash

from causeway.fleet.catalogue import Catalogue
from causeway.fleet.tokens import grams_of

UNKNOWN = -1
ROWS_AT_ONCE = 2000
MINHASH_BANDS = 1


@dataclass(frozen=True)
class Attributions:
    """One row per sequence.

    Attributes
    ----------
    application, family : ndarray of int64
        Numbers in the catalogue, `UNKNOWN` where rejected. A family may be known where the version is not.
    score, lead : ndarray of float64, 0 to 1
        Of the best application, and how far it is ahead of the second.
    """

    application: np.ndarray
    family: np.ndarray
    score: np.ndarray
    lead: np.ndarray


def attribute(tokens: np.ndarray, catalogue: Catalogue) -> Attributions:
    """Attribute sequences.

    Parameters
    ----------
    tokens : ndarray of uint64, shape (n, launches)
        0 behind the end of a shorter sequence.
    catalogue : Catalogue

    Returns
    -------
    Attributions
    """
    parts = [_some(tokens[first : first + ROWS_AT_ONCE], catalogue) for first in range(0, len(tokens), ROWS_AT_ONCE)]
    if not parts:
        return Attributions(*(np.zeros(0, kind) for kind in (np.int64, np.int64, np.float64, np.float64)))
    return Attributions(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def scores(tokens: np.ndarray, catalogue: Catalogue) -> np.ndarray:
    """Return the score of each application for each sequence, shape (n, applications); 0 for a sequence without a gram."""
    known, starts, owners, weights = catalogue.table
    grams = _once(grams_of(tokens, catalogue.k))
    n, applications = len(tokens), len(catalogue.applications)
    rows = np.broadcast_to(np.arange(n)[:, None], grams.shape)[grams != 0]
    flat = grams[grams != 0]
    at = np.minimum(np.searchsorted(known, flat), len(known) - 1)
    hit = known[at] == flat
    whole = np.bincount(rows, weights=np.where(hit, weights[at], catalogue.unknown_weight), minlength=n)
    at, rows = at[hit], rows[hit]
    many = starts[at + 1] - starts[at]
    inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    cells = np.repeat(rows, many) * applications + owners[np.repeat(starts[at], many) + inside]
    shared = np.bincount(cells, weights=np.repeat(weights[at], many), minlength=n * applications).reshape(n, applications)
    return shared / np.where(whole > 0, whole, 1)[:, None]


def _once(grams: np.ndarray) -> np.ndarray:
    """Keep each gram of a row once: a repeated layer then counts like one that is not, and one changed kernel in it does little harm."""
    grams = np.sort(grams, axis=1)
    grams[:, 1:][grams[:, 1:] == grams[:, :-1]] = 0
    return grams


def _some(tokens: np.ndarray, catalogue: Catalogue) -> tuple[np.ndarray, ...]:
    found = scores(tokens, catalogue)
    rows = np.arange(len(found))
    best = found.argmax(1)
    score = found[rows, best]
    rest = found.copy()
    rest[rows, best] = 0
    lead = score - rest.max(1, initial=0)
    sure = (score >= catalogue.threshold) & (lead >= catalogue.margin)
    strangers = np.where(catalogue.family_of[None, :] == catalogue.family_of[best][:, None], 0, found)
    kin = (score >= catalogue.threshold * FAMILY_SHARE) & (score - strangers.max(1, initial=0) >= catalogue.margin)
    return np.where(sure, best, UNKNOWN), np.where(sure | kin, catalogue.family_of[best], UNKNOWN), score, lead


FAMILY_SHARE = 0.6
"""A family is recognised from this part of the threshold on: a new version of a known application shares most, not all, of its grams."""


def cluster(tokens: np.ndarray, catalogue: Catalogue, epoch_key: bytes, slots: int) -> int:
    """Return the anonymous slot of an unknown sequence: alike sequences of an epoch tend to share it, and it says nothing on another day.

    The smallest of the keyed hashes of its grams (MinHash, Broder 1997; datasketch) picks the slot, so two sequences share it with the
    probability of their Jaccard similarity or by chance, 1 / slots. The key rotates with the epoch.
    """
    grams = grams_of(tokens, catalogue.k)
    seed = int.from_bytes(epoch_key[:4], "little")
    sketch = MinHash(num_perm=MINHASH_BANDS, seed=seed)
    sketch.update_batch([gram.tobytes() + epoch_key for gram in grams[grams != 0]] or [epoch_key])
    return int(sketch.hashvalues[0]) % slots
