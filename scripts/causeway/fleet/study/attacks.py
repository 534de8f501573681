"""What attackers can do to a simulated fleet, measured: leaks, re-identification, damage; and what is refused.

Each attack states what was expected before it ran. `held` says whether that came true; for attacks that this design does not stop, the
expectation is the damage itself.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from scipy.stats import beta

from causeway.errors import CausewayError
from causeway.fleet.attribution import cluster
from causeway.fleet.catalogue import Catalogue
from causeway.fleet.collector import Collector, join, signed
from causeway.fleet.envelope import Issuer
from causeway.fleet.layout import WORD, Layout, Section
from causeway.fleet.modes import Client
from causeway.fleet.noise import Noise
from causeway.fleet.tokens import tokens_of
from causeway.logs import LOG

AUDIT_CONFIDENCE = 0.99
EPOCH = 1


@dataclass(frozen=True)
class Attack:
    """One attack and how it went.

    Attributes
    ----------
    group : int
        Number in the list of bad inputs of `docs/fleet.md`.
    name, expected : str
    held : bool
        Whether what was expected came true.
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


def audit(draw: Callable[[int, int], np.ndarray], claim: float, runs: int, confidence: float = AUDIT_CONFIDENCE) -> dict[str, float]:
    """Return a lower bound of the epsilon that releases of neighbouring inputs show.

    Parameters
    ----------
    draw : callable
        `draw(with_user, runs)` gives the released value of the cell that the user's report fills, int64 or float64, shape (runs,).
    claim : float
        Epsilon that was claimed.
    runs : int
        Releases of each of both inputs.
    confidence : float
        Of the bound: it lies above the true epsilon with probability 1 - confidence at most.

    Returns
    -------
    dict
        `lower_bound`, `claim` and `runs`. The threshold of the test is chosen on one half of the runs, its error rates are bounded on the
        other (Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020).
    """
    without, with_user = (draw(flag, runs) for flag in (0, 1))
    half = runs // 2
    levels = np.unique(np.quantile(np.concatenate([without[:half], with_user[:half]]), np.linspace(0.02, 0.98, 49)))
    ratios = [_log_ratio(with_user[:half] > level, without[:half] > level) for level in levels]
    level = levels[int(np.argmax(ratios))]
    hits, alarms = int((with_user[half:] > level).sum()), int((without[half:] > level).sum())
    size, alpha = runs - half, (1 - confidence) / 2
    least = beta.ppf(alpha, hits, size - hits + 1) if hits else 0.0
    most = beta.ppf(1 - alpha, alarms + 1, size - alarms) if alarms < size else 1.0
    bound = math.log(least / most) if least > 0 else 0.0
    return {"lower_bound": max(bound, 0.0), "claim": claim, "runs": float(runs)}


def _log_ratio(hits: np.ndarray, alarms: np.ndarray) -> float:
    return math.log((hits.mean() + 1e-3) / (alarms.mean() + 1e-3))


def audit_section(section: Section, noise: Noise, runs: int) -> dict[str, float]:
    """Audit one server's noise on a section: a report that puts all its units into one cell, against no report."""
    wide = replace(section, rows=runs, columns=1)

    def draw(with_user: int, count: int) -> np.ndarray:
        return noise.draw([replace(wide, rows=count)], f"audit/{with_user}") + with_user * section.units

    return audit(draw, float(section.epsilon), runs)


def audits(layout: Layout, noise: Noise, runs: int = 20_000) -> list[Attack]:
    """Audit each section with one server's noise, and show that the audit notices noise of half the width."""
    found = []
    for section in layout.sections:
        figures = audit_section(section, noise, runs)
        held = figures["lower_bound"] <= figures["claim"]
        found.append(Attack(15, f"audit of {section.name}", "the lower bound stays below the claimed epsilon", held, figures))
    section = replace(layout.by_name["durations"], epsilon=Fraction(1))
    strong = replace(section, epsilon=section.epsilon * 2)
    figures = audit_section(strong, noise, runs) | {"claim": float(section.epsilon)}
    noticed = figures["lower_bound"] > figures["claim"]
    return [*found, Attack(15, "audit of half the noise", "the lower bound exceeds the claim, so the audit can fail", noticed, figures)]


class Trial:
    """Issuer, both servers and a client of one epoch in this process."""

    def __init__(self, layout: Layout, bound: int = 1) -> None:
        keys = {role: X25519PrivateKey.generate() for role in ("leader", "helper")}
        self.layout, self.issuer = layout, Issuer(Ed25519PrivateKey.generate(), bound)
        self.servers = {role: Collector(role, EPOCH, layout, key, self.issuer.public) for role, key in keys.items()}
        self.client = Client(layout, EPOCH, keys["leader"].public_key(), keys["helper"].public_key())

    def send(self, vector: np.ndarray, user: str, client: Client | None = None) -> None:
        """Send one user's report to both servers."""
        messages = (client or self.client).messages(vector, lambda serial: self.issuer.issue(user, EPOCH, serial))
        for server, message in zip(self.servers.values(), messages, strict=True):
            server.receive(message, 0)

    def total(self) -> np.ndarray:
        """Return the sum of the joined reports, int64."""
        joined = join(self.servers["leader"].windows, self.servers["helper"].serials)
        return signed(sum(server.sums(joined, 1) for server in self.servers.values()))[0]


class _NoCheck:
    def __init__(self, layout: Layout) -> None:
        self.digest = layout.digest

    def check(self, vector: np.ndarray) -> None:
        """Let everything through, as a malicious client does."""


def hidden_value(layout: Layout, vectors: np.ndarray, value: int = 1_000_000) -> Attack:
    """Put a huge count into one report: no server can see it inside its share."""
    trial, lie = Trial(layout), np.zeros(layout.cells, WORD)
    lie[0] = value
    for number, vector in enumerate(vectors):
        trial.send(vector, f"user{number}")
    trial.send(lie, "liar", replace(trial.client, layout=_NoCheck(layout)))
    wrong = trial.total() - vectors.sum(0, dtype=np.int64)
    held = bool(wrong[0] == value and not wrong[1:].any())
    figures = {"value": float(value), "honest_count": float(vectors[:, 0].sum()), "released_error": float(wrong[0])}
    return Attack(
        2, "a value hidden inside a share", "not stopped: the cell is wrong by exactly the value, no other cell is", held, figures
    )


def sybils(layout: Layout, vectors: np.ndarray, share: float = 0.05) -> Attack:
    """Let a share of the users report one cell, within the bounds."""
    n = len(vectors)
    liars = round(n * share / (1 - share))
    lie = np.zeros(layout.cells, WORD)
    for section in layout.sections:
        lie[section.first] = section.units
    layout.check(lie)
    worst, fair = 0.0, vectors.sum(0, dtype=np.float64)
    for section in layout.sections:
        before = fair[section.cells] / (n * section.units)
        after = (fair[section.cells] + liars * lie[section.cells]) / ((n + liars) * section.units)
        worst = max(worst, float(np.abs(after - before).max()))
    part = liars / (n + liars)
    return Attack(
        3,
        "sybils inside the bounds",
        "no cell's share moves by more than their share of users",
        worst <= part + 1e-12,
        {"sybils": part, "bias": worst},
    )


def many_gpus(layout: Layout, vector: np.ndarray, gpus: int = 1000) -> Attack:
    """Let a user with many GPUs try to report from each."""
    trial, taken = Trial(layout), 0
    for _ in range(gpus):
        try:
            trial.send(vector, "farm")
            taken += 1
        except CausewayError:
            continue
    held = taken == 1 and bool((trial.total() == vector).all())
    return Attack(9, "a user with many GPUs", "one report is taken", held, {"gpus": float(gpus), "taken": float(taken)})


def dictionary(catalogue: Catalogue, names: list[str]) -> Attack:
    """Guess kernel names against the catalogue's tokens, with the key that every client has."""
    cells = {int(token) for entry in catalogue.applications for token in entry.kernels}
    guessed = cells & {int(token) for token in tokens_of(names, catalogue.key)}
    blind = cells & {int(token) for token in tokens_of(names, hashlib.sha256(b"another key").digest())}
    share = len(guessed) / max(len(cells), 1)
    figures = {"tokens": float(len(cells)), "recovered": share, "recovered_without_key": len(blind) / max(len(cells), 1)}
    held = not blind
    expected = (
        "with the key, which all clients have, names that can be guessed are found in the catalogue, which is public; without it none"
    )
    return Attack(8, "dictionary attack on the catalogue's tokens", expected, held, figures)


def linkage(catalogue: Catalogue, sequences: np.ndarray, slots: int, keys: Sequence[bytes]) -> Attack:
    """Link the anonymous slots of unknown applications from day to day, if an attacker saw them, which no server does.

    A slot of `slots` tells at most log2(slots) bits; with a new key each day it agrees as often as chance. `sequences` has one row per
    application: several of one application share their slots, and would count as one.
    """
    days = np.array([[cluster(tokens, catalogue, key, slots) for tokens in sequences] for key in keys]).reshape(len(keys), -1)
    same = days[1:] == days[:-1]
    rate = float(same.mean()) if same.size else 0.0
    limit = 1 / slots + 4 * math.sqrt(1 / slots * (1 - 1 / slots) / max(same.size, 1))
    figures = {"pairs_of_days": float(same.size), "same_slot": rate, "chance": 1 / slots}
    return Attack(8, "linkage of anonymous clusters from day to day", "slots agree as often as chance", rate <= limit, figures)


def reidentification(layout: Layout, vectors: np.ndarray, rng: np.random.Generator) -> Attack:
    """Tell from the helper's halves whose report is whose: an attacker that knows every vector and sees one server's store.

    The best it can do is to compare the opened half with each vector; a half is uniformly random, so it does no better than chance.
    """
    from causeway.fleet.shares import split

    n, right = len(vectors), 0
    for number in rng.permutation(n).tolist():
        half = np.frombuffer(split(vectors[number])[1], WORD)
        distance = np.minimum(half - vectors, vectors - half).astype(np.float64).sum(1)
        right += int(np.argmin(distance)) == number
    limit = 1 / n + 5 / n  # the hits of a blind guess are Poisson with mean 1: more than 6 of them come once in ten thousand
    LOG.info("re-identification from one server's store: %d of %d", right, n)
    figures = {"chance": 1 / n, "at_most": limit, "reports": float(n)}
    return Attack(8, "re-identification from one server's store", "as often as chance", right / n <= limit, figures)


def membership(layout: Layout, epsilon: float) -> Attack:
    """State what an attacker who knows all other reports learns from the releases: the bound that epsilon gives."""
    advantage = math.expm1(epsilon) / (math.exp(epsilon) + 1)
    figures = {"epsilon": epsilon, "most_advantage": advantage, "most_accuracy": (1 + advantage) / 2}
    return Attack(15, "membership of a user in a day", "accuracy of at most exp(eps) / (1 + exp(eps))", True, figures)


def summary(attacks: list[Attack], facts: Mapping) -> dict:
    """Return the document that `fleet_attacks.schema.json` describes."""
    return dict(facts) | {"attacks": [attack.as_dict() for attack in attacks], "all_held": all(attack.held for attack in attacks)}
