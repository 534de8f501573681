"""What the fleet states: lengths and forms of messages, what composed releases cost, how wide noise is, and whose noise
a simulated day holds after the configuration's seed was changed.
"""

import hashlib
import itertools
import math
import secrets
import struct
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fleet_samples import CLIPS, SHARES, learn
from scipy import integrate, optimize

from causeway.core.errors import CausewayError
from causeway.core.tables import write_table
from causeway.fleet.protection import local_dp
from causeway.fleet.protection.envelope import LONGEST_BODY, MODES, ROLES, Envelope, ReportRefusedError, decode
from causeway.fleet.protection.ledger import composed_epsilon
from causeway.fleet.protection.noise import noise_half_width
from causeway.fleet.release import aggregate
from causeway.fleet.report_layout import WORD
from causeway.fleet.study import steps

DOCS = Path(__file__).resolve().parents[3] / "docs" / "fleet.md"


def message(body=b"sealed", **more):
    facts = {"serial": b"s" * 16, "layout": b"l" * 16, "signature": b"g" * 64, "epoch": 7} | more
    return Envelope(role=ROLES[-1], mode=MODES[-1], body=body, **facts)


def test_a_message_comes_back_as_it_was():
    for role, mode in itertools.product(ROLES, MODES):
        one = Envelope(
            role=role, mode=mode, epoch=2**32 - 1, serial=b"s" * 16, layout=b"l" * 16, signature=b"g" * 64, body=b"b"
        )
        assert decode(one.encoded()) == one


@pytest.mark.parametrize(("at", "value"), [(0, ord("X")), (4, len(ROLES)), (5, len(MODES)), (4, 255), (5, 255)])
def test_a_role_or_mode_that_there_is_not_is_refused(at, value):
    """The fifth byte is the role, the sixth the mode."""
    packed = bytearray(message().encoded())
    packed[at] = value
    with pytest.raises(ReportRefusedError, match="form"):
        decode(bytes(packed))


def test_a_message_has_a_least_and_a_greatest_length():
    empty = message(b"").encoded()
    assert decode(empty).body == b""
    assert len(decode(message(b"x" * LONGEST_BODY).encoded()).body) == LONGEST_BODY
    for wrong in (empty[:-1], message(b"x" * (LONGEST_BODY + 1)).encoded()):
        with pytest.raises(ReportRefusedError, match="length"):
            decode(wrong)


def lost(epsilons, epsilon):
    """Return the delta at an epsilon of randomised responses together, by all of their outcomes: no composition of
    mechanisms with these epsilons is worse (Kairouz, Oh and Viswanath 2015, theorem 3.2).
    """
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(epsilons)):
        one = math.prod(1 / (1 + math.exp(-sign * each)) for sign, each in zip(signs, epsilons, strict=True))
        other = math.prod(1 / (1 + math.exp(sign * each)) for sign, each in zip(signs, epsilons, strict=True))
        total += max(0.0, one - math.exp(epsilon) * other)
    return total


@pytest.mark.parametrize(
    ("epsilons", "together"), [([0.5] * 6, 1.9), ([0.25, 0.75, 0.75], 1.1), ([0.5, 1.0], 0.8), ([0.125] * 3, 0.2)]
)
def test_releases_together_cost_what_all_outcomes_say(epsilons, together):
    found = composed_epsilon([Fraction(one) for one in epsilons], lost(epsilons, together))
    assert found == pytest.approx(together, abs=2e-3)


def lost_by_equals(days, epsilon):
    """Return the delta at an epsilon of `days` randomised responses of epsilon 1; as `lost`, by their number of hits."""
    total = 0.0
    for hits in range(days + 1):
        one = math.comb(days, hits) * math.exp(hits) / (1 + math.e) ** days
        total += max(0.0, one - math.exp(epsilon + days - 2 * hits) * one)
    return total


@pytest.mark.parametrize(
    ("delta", "optimal", "places", "advanced"), [(1e-9, "29.99999", 5, "86.8"), (1e-5, "29.87", 2, "77.8")]
)
def test_thirty_days_cost_what_the_docs_say(delta, optimal, places, advanced):
    """The optimum by bisection of the sum over all outcomes; the theorem of Dwork, Rothblum and Vadhan (2010) by its
    formula.
    """
    assert lost_by_equals(3, 1.9) == pytest.approx(lost([1.0] * 3, 1.9))
    found = optimize.brentq(lambda epsilon: lost_by_equals(30, epsilon) - delta, 0, 30)
    bound = math.sqrt(2 * 30 * math.log(1 / delta)) + 30 * (math.e - 1)
    assert (f"{found:.{places}f}", f"{bound:.1f}") == (optimal, advanced)
    assert composed_epsilon([Fraction(1)] * 30, delta) == pytest.approx(found, abs=2e-3)
    words = " ".join(DOCS.read_text(encoding="utf-8").split())
    said = words[words.index("Days compose:") :][:400]
    assert optimal in said
    assert advanced in said


def test_one_release_costs_its_epsilon_and_none_nothing():
    assert composed_epsilon([Fraction(1, 2)], 1e-3) == 0.5
    assert composed_epsilon([], 1e-3) == 0
    assert composed_epsilon([Fraction(1, 2)] * 8, 0) == 4


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_width_of_noise_is_that_of_its_density(confidence):
    """Of one Laplace noise by its quantile; of two by the integral of their convolution, exp(-|x|) (1 + |x|) / 4."""
    assert noise_half_width(3.0, confidence, 1) == pytest.approx(-3 * math.log(1 - confidence))

    def within(half):
        return 2 * integrate.quad(lambda x: math.exp(-x) * (1 + x) / 4, 0, half)[0] - confidence

    assert noise_half_width(3.0, confidence) == pytest.approx(3 * optimize.brentq(within, 0, 50))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_local_noise_needs_an_epsilon_above_zero(epsilon):
    with pytest.raises(CausewayError, match="expected above 0"):
        local_dp.flip_threshold(epsilon)


def test_local_noise_from_the_systems_entropy_keeps_half_and_flips_the_share_that_it_says():
    epsilon = 2.0
    flags = np.arange(80_001) % 2 == 0
    body = local_dp.randomise(flags, epsilon)
    assert len(body) == 10_001
    found = local_dp.flags_of(body, flags.size).astype(bool)
    assert found[flags].mean() == pytest.approx(0.5, abs=0.02)
    assert found[~flags].mean() == pytest.approx(1 / (math.e + 1), abs=0.02)  # half of epsilon for a section
    assert local_dp.randomise(flags, epsilon) != body
    for wrong in (body[:-1], body + secrets.token_bytes(1)):
        with pytest.raises(ReportRefusedError, match="length"):
            local_dp.flags_of(wrong, flags.size)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_deviation_of_a_local_count_is_that_of_a_binomial_one(epsilon):
    q = 1 / (math.exp(epsilon / 2) + 1)
    drawn = np.random.default_rng(3).binomial(5000, q, 100_000).astype(float)
    counts, deviation = local_dp.estimate(drawn, 5000, epsilon)
    assert counts.mean() == pytest.approx(0, abs=deviation / 50)
    assert counts.std() == pytest.approx(deviation, rel=0.02)
    assert local_dp.estimate(np.array([2500.0]), 5000, epsilon)[0][0] == pytest.approx(5000)


COUNTED = {"report": [0, 0, 1, 2], "cell": [3, 70_000, 1, 0], "value": [1, 16, 2**40, 5]}
DAY = {"clusters": 2, "clips": CLIPS, "epsilon": SHARES, "budget": 1.0, "delta": 0.0, "release_threshold": 5}


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Return a function that releases a day of 40 reports in a folder with a test seed, and returns the bytes."""
    found = learn({"a": ["x", "y", "z", "w"], "b": ["p", "q", "r"]})
    layout = steps.layout_of(found, DAY)
    rng = np.random.default_rng(1)
    leader = rng.integers(0, 2**32, (24, layout.cells), dtype=WORD)
    arrays = {"leader": leader, "helper": -leader, "reports": np.eye(24, dtype=np.int64)[0] * 40}
    monkeypatch.setattr(steps, "read_catalogue", lambda folder: found)
    monkeypatch.setattr(aggregate, "read_shards", lambda folder: [(arrays, 100)])
    counts = tmp_path / "counts.parquet"
    write_table(pa.table(COUNTED), counts, "fleet_counts")

    def release(folder, seed, counts=counts):
        out = tuple(tmp_path / folder / name for name in ("release.bin", "estimates.parquet", "applications.parquet"))
        steps.release_day(DAY | {"test_seed": seed}, "share2", tmp_path, counts, tmp_path, out)
        return out[0].read_bytes()

    return release


def test_another_test_seed_releases_its_own_noise(released):
    """The ledger keeps what it released: a changed seed must not find the old one's noise under its name."""
    one = released("same", 11)
    other = released("same", 12)
    assert b'"test_seed": 11' in one.splitlines()[0]
    assert b'"test_seed": 12' in other.splitlines()[0]
    assert other == released("fresh", 12)
    assert one.split(b"\n", 1)[1] != other.split(b"\n", 1)[1]
    assert released("same", 11) == one


def test_noise_of_the_systems_entropy_is_drawn_once_also_beside_a_seed(released):
    seeded = released("same", 11)
    drawn = released("same", None)
    assert drawn.split(b"\n", 1)[1] != seeded.split(b"\n", 1)[1]
    assert released("same", None) == drawn


def test_a_days_name_is_a_digest_of_its_counted_values(tmp_path):
    """By hand, from the bytes of the numbers."""
    write_table(pa.table(COUNTED), tmp_path / "counts.parquet", "fleet_counts")
    columns = [hashlib.sha256(struct.pack("<4q", *values)).digest() for values in COUNTED.values()]
    assert steps.population_of(tmp_path / "counts.parquet") == hashlib.sha256(b"".join(columns)).hexdigest()[:12]


def test_noise_depends_on_the_counted_values_not_on_the_file_that_holds_them(released, tmp_path):
    """Another version of a library writes other bytes for the same counts: its name, its compression, its groups."""
    known = released("as_written", 11)
    rewritten = tmp_path / "rewritten.parquet"
    pq.write_table(pq.read_table(tmp_path / "counts.parquet"), rewritten, compression="none", row_group_size=3)
    assert rewritten.read_bytes() != (tmp_path / "counts.parquet").read_bytes()
    assert released("rewritten", 11, rewritten) == known
    for column in COUNTED:
        changed = {name: [*values[:-1], values[-1] + (name == column)] for name, values in COUNTED.items()}
        write_table(pa.table(changed), tmp_path / "changed.parquet", "fleet_counts")
        assert released(column, 11, tmp_path / "changed.parquet") != known
