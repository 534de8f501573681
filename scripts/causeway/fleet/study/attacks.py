"""Attacks on a simulated fleet, measured: re-identification, linkage, guessed names, and an audit of epsilon.

Each attack names its expected result, fixed before it ran; `held` is whether the result is as expected. For attacks
that this design does not stop, the expected result is the damage itself.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction

import numpy as np
from scipy.stats import beta

from causeway.core.logs import LOG
from causeway.fleet.attribution.attribution import cluster
from causeway.fleet.attribution.catalogue import Catalogue
from causeway.fleet.attribution.tokens import tokens_of
from causeway.fleet.protection.noise import Noise
from causeway.fleet.protection.secret_sharing import split
from causeway.fleet.report_layout import WORD, ReportLayout, Section

AUDIT_CONFIDENCE = 0.99


@dataclass(frozen=True, kw_only=True)
class Attack:
    """One attack and its result.

    Attributes
    ----------
    group : int
        Number in the list of bad inputs of `docs/fleet.md`.
    name, expected : str
    held : bool
        Whether the result is as expected.
    figures : dict of str to float
    """

    group: int
    name: str
    expected: str
    held: bool
    figures: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict:
        """Return it for a JSON document."""
        return asdict(self)


def audit(
    draw: Callable[[int, int], np.ndarray], claim: float, runs: int, confidence: float = AUDIT_CONFIDENCE
) -> dict[str, float]:
    """Return an empirical lower bound of epsilon, from releases of neighbouring inputs.

    Parameters
    ----------
    draw : callable
        `draw(with_user, runs)` gives the released value of the cell that the user's report fills, int64 or float64,
        shape (runs,).
    claim : float
        Epsilon that was claimed.
    runs : int
        Releases of each of both inputs.
    confidence : float
        Of the bound: it exceeds the true epsilon with probability 1 - confidence at most.

    Returns
    -------
    dict
        `lower_bound`, `claim` and `runs`. The threshold of the test is chosen on one half of the runs, its error rates
        are bounded on the other (Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020).
    """
    without, with_user = (draw(flag, runs) for flag in (0, 1))
    half = runs // 2
    levels = np.unique(np.quantile(np.concatenate([without[:half], with_user[:half]]), np.linspace(0.02, 0.98, 49)))
    ratios = [_log_ratio(with_user[:half] > level, without[:half] > level) for level in levels]
    level = levels[int(np.argmax(ratios))]
    hits = int((with_user[half:] > level).sum())
    alarms = int((without[half:] > level).sum())
    size = runs - half
    alpha = (1 - confidence) / 2
    least = beta.ppf(alpha, hits, size - hits + 1) if hits else 0.0
    most = beta.ppf(1 - alpha, alarms + 1, size - alarms) if alarms < size else 1.0
    bound = math.log(least / most) if least > 0 else 0.0
    return {"lower_bound": max(bound, 0.0), "claim": claim, "runs": float(runs)}


def _log_ratio(hits: np.ndarray, alarms: np.ndarray) -> float:
    return math.log((hits.mean() + 1e-3) / (alarms.mean() + 1e-3))


def audit_section(section: Section, noise: Noise, runs: int) -> dict[str, float]:
    """Audit one server's noise on a section: a report with all its counts in one cell, against no report."""
    wide = replace(section, rows=runs, columns=1)

    def draw(with_user: int, count: int) -> np.ndarray:
        return noise.draw([replace(wide, rows=count)], f"audit/{with_user}") + with_user * section.contribution_bound

    return audit(draw, float(section.epsilon), runs)


def audits(layout: ReportLayout, noise: Noise, runs: int = 20_000) -> list[Attack]:
    """Audit each section with one server's noise, and show that the audit detects noise of half the scale."""
    found = []
    for section in layout.sections:
        figures = audit_section(section, noise, runs)
        held = figures["lower_bound"] <= figures["claim"]
        found.append(
            Attack(
                group=15,
                name=f"audit of {section.name}",
                expected="the lower bound stays below the claimed epsilon",
                held=held,
                figures=figures,
            )
        )
    section = replace(layout.by_name["durations"], epsilon=Fraction(1))
    strong = replace(section, epsilon=section.epsilon * 2)
    figures = audit_section(strong, noise, runs) | {"claim": float(section.epsilon)}
    detected = figures["lower_bound"] > figures["claim"]
    return [
        *found,
        Attack(
            group=15,
            name="audit of half the noise",
            expected="the lower bound exceeds the claim, so the audit can fail",
            held=detected,
            figures=figures,
        ),
    ]


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


def membership(layout: ReportLayout, noise: Noise, runs: int = 20_000) -> Attack:
    """Guess from one release whether a user took part, knowing all other reports and what the user would send.

    The guess is the likelier of both for Laplace noise, over one cell of every section, which the report fills.

    Parameters
    ----------
    layout : ReportLayout
    noise : Noise
        Of one server.
    runs : int
        Releases, half of them with the user.

    Notes
    -----
    Nobody guesses right more often than exp(eps) / (1 + exp(eps)), eps the sum over the sections (Kairouz, Oh and
    Viswanath 2015). The attack held if the lower limit of the measured share is not above that.
    """
    half = runs // 2
    evidence = np.zeros((2, half))
    for section in layout.sections:
        wide = [replace(section, rows=half, columns=1)]
        for with_user in (0, 1):
            seen = noise.draw(wide, f"membership/{with_user}") + with_user * section.contribution_bound
            evidence[with_user] += (np.abs(seen) - np.abs(seen - section.contribution_bound)) / section.noise_scale
    hits = int((evidence[1] > 0).sum() + (evidence[0] < 0).sum())
    right = hits + int((evidence == 0).sum()) // 2  # a coin is thrown for ties
    least = float(beta.ppf(1 - AUDIT_CONFIDENCE, right, 2 * half - right + 1))
    epsilon = float(sum(section.epsilon for section in layout.sections))
    most = math.exp(epsilon) / (1 + math.exp(epsilon))
    return Attack(
        group=15,
        name="membership of a user in a day",
        expected="accuracy of at most exp(eps) / (1 + exp(eps))",
        held=least <= most,
        figures={"epsilon": epsilon, "most_accuracy": most, "accuracy": right / (2 * half), "runs": 2.0 * half},
    )


def summary(attacks: list[Attack], facts: Mapping) -> dict:
    """Return the document that `fleet_attacks.schema.json` describes."""
    return dict(facts) | {
        "attacks": [attack.as_dict() for attack in attacks],
        "all_held": all(attack.held for attack in attacks),
    }
