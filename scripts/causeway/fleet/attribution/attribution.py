"""Which application a sequence of launches comes from, decided on the client: one of the catalogue, or none.

Score of an application: the weight of the sequence's k-grams that it has, over the weight of all k-grams of the
sequence (containment weighted by inverse document frequency). It is accepted if its score reaches the threshold and
leads the second by the margin; else the sequence is of an unknown application and goes to an anonymous cluster.
"""

from dataclasses import dataclass, fields

import numpy as np

from causeway.fleet.attribution.catalogue import Catalogue
from causeway.fleet.attribution.tokens import grams_of

UNKNOWN = -1
ROWS_AT_ONCE = 2000
MINHASH_PERMUTATIONS = 1
FAMILY_SHARE = 0.6
"""A family is accepted from this part of the threshold on: a new version of a known application shares most, not all,
of its grams.
"""


@dataclass(frozen=True, kw_only=True)
class Attributions:
    """One row per sequence; all arrays have the shape (n,).

    Attributes
    ----------
    application, family : ndarray of int64
        Indices in the catalogue, `UNKNOWN` where rejected. A family may be known where the version is not.
    score, lead : ndarray of float64, 0 to 1
        Score of the best application, and its margin over the second.
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
    starts = range(0, max(len(tokens), 1), ROWS_AT_ONCE)
    parts = [_attribute_batch(tokens[first : first + ROWS_AT_ONCE], catalogue) for first in starts]
    columns = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Attributions)}
    return Attributions(**{name: np.concatenate(values) for name, values in columns.items()})


def scores(tokens: np.ndarray, catalogue: Catalogue) -> np.ndarray:
    """Return the score of each application for each sequence: idf-weighted containment.

    Parameters
    ----------
    tokens : ndarray of uint64, shape (n, launches)
    catalogue : Catalogue

    Returns
    -------
    ndarray of float64, shape (n, applications), 0 to 1; 0 for a sequence without a gram.
    """
    distinct, starts, owners, weights = catalogue.inverted_index
    grams = _distinct(grams_of(tokens, catalogue.k))
    n = len(tokens)
    applications = len(catalogue.applications)
    rows = np.broadcast_to(np.arange(n)[:, None], grams.shape)[grams != 0]
    flat = grams[grams != 0]
    position = np.minimum(np.searchsorted(distinct, flat), len(distinct) - 1)
    hit = distinct[position] == flat
    whole = np.bincount(rows, weights=np.where(hit, weights[position], catalogue.unknown_weight), minlength=n)
    position = position[hit]
    rows = rows[hit]
    many = starts[position + 1] - starts[position]
    inside = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    cells = np.repeat(rows, many) * applications + owners[np.repeat(starts[position], many) + inside]
    shared = np.bincount(cells, weights=np.repeat(weights[position], many), minlength=n * applications).reshape(
        n, applications
    )
    return shared / np.where(whole > 0, whole, 1)[:, None]


def _distinct(grams: np.ndarray) -> np.ndarray:
    """Keep each gram of a row once: a repeated layer then counts like one that is not, and one changed kernel in it
    lowers the score little.
    """
    grams = np.sort(grams, axis=1)
    grams[:, 1:][grams[:, 1:] == grams[:, :-1]] = 0
    return grams


def _attribute_batch(tokens: np.ndarray, catalogue: Catalogue) -> Attributions:
    by_application = scores(tokens, catalogue)
    rows = np.arange(len(by_application))
    best = by_application.argmax(1)
    family = catalogue.family_of[best]
    score = by_application[rows, best]
    others = by_application.copy()
    others[rows, best] = 0
    lead = score - others.max(1, initial=0)
    accepted = (score >= catalogue.threshold) & (lead >= catalogue.margin)
    other_families = np.where(catalogue.family_of[None, :] == family[:, None], 0, by_application)
    family_lead = score - other_families.max(1, initial=0)
    family_accepted = (score >= catalogue.threshold * FAMILY_SHARE) & (family_lead >= catalogue.margin)
    return Attributions(
        application=np.where(accepted, best, UNKNOWN),
        family=np.where(accepted | family_accepted, family, UNKNOWN),
        score=score,
        lead=lead,
    )


def cluster(tokens: np.ndarray, catalogue: Catalogue, epoch_key: bytes, clusters: int) -> int:
    """Return the anonymous cluster of an unknown sequence: similar sequences of an epoch tend to share one, and it
    identifies nothing on another day.

    The smallest of the keyed hashes of its grams (MinHash, Broder 1997; datasketch) chooses the cluster, so two
    sequences share it with the probability of their Jaccard similarity, or by chance, 1 / clusters. The key rotates
    with the epoch.

    Parameters
    ----------
    tokens : ndarray of uint64, shape (launches,)
    catalogue : Catalogue
    epoch_key : bytes
    clusters : int

    Returns
    -------
    int, 0 to clusters - 1
    """
    from datasketch import MinHash  # a third of a CPU-second, which programs that look for no cluster need not wait

    grams = grams_of(tokens, catalogue.k)
    seed = int.from_bytes(epoch_key[:4], "little")
    sketch = MinHash(num_perm=MINHASH_PERMUTATIONS, seed=seed)
    sketch.update_batch([gram.tobytes() + epoch_key for gram in grams[grams != 0]] or [epoch_key])
    return int(sketch.hashvalues[0]) % clusters
