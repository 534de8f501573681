"""Attacks on the privacy of what is released: the audit stays below the claim, and can fail; damage is what it is
said to be.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from fleet_samples import learn, small_layout, vectors_of

from causeway.fleet.protection.noise import SecureNoise, SeededNoise
from causeway.fleet.release.cell_noise import ServerNoise
from causeway.fleet.release.estimates import estimate
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import WORD
from causeway.fleet.study import attacks, client_attacks, privacy_audit
from causeway.fleet.world.applications import make_suite

LAYOUT = small_layout()


def test_the_audit_of_production_noise_stays_below_the_claim_and_comes_near():
    """Group 15: one section at epsilon 1, by one server's noise, as if the other one colluded."""
    section = replace(LAYOUT.by_name["durations"], epsilon=Fraction(1))
    found = privacy_audit.audit_section(section, SecureNoise(), 20_000)
    assert 0.4 < found["lower_bound"] <= 1.0  # in 60 trials it lay between .53 and .96


@pytest.mark.parametrize("factor", [2, 4])
def test_the_audit_notices_too_little_noise(factor):
    section = replace(LAYOUT.by_name["durations"], epsilon=Fraction(factor))
    assert privacy_audit.audit_section(section, SeededNoise(1), 20_000)["lower_bound"] > 1.5


class Weak:
    """A source of half the noise that a section promises."""

    simulated = True

    def draw(self, sections, purpose):
        return SeededNoise(1).draw([replace(one, epsilon=2 * one.epsilon) for one in sections], purpose)


def test_each_section_is_audited_at_its_own_epsilon_with_runs_enough_to_notice_half_the_noise():
    """Epsilons of .05 to .3; the control of each audit is the same one with half its noise."""
    found = privacy_audit.audits(LAYOUT, SeededNoise(1))
    assert [attack.held for attack in found] == [True] * len(LAYOUT.sections)
    for attack, section in zip(found, LAYOUT.sections, strict=True):
        figures = attack.figures
        assert figures["claim"] == float(section.epsilon)
        assert figures["lower_bound"] <= figures["claim"] < figures["bound_with_half_the_noise"]
        assert figures["bound_with_half_the_noise"] <= 2 * figures["claim"]
    weak = privacy_audit.audits(LAYOUT, Weak())
    assert [attack.held for attack in weak] == [False] * len(LAYOUT.sections)


def test_an_audit_that_could_not_notice_half_the_noise_does_not_say_that_it_held(monkeypatch):
    """With 2,000 runs the bound of the sections of epsilon .05 is 0 with and without enough noise."""
    monkeypatch.setattr(privacy_audit, "MOST_RUNS", 2000)
    found = {attack.name: attack for attack in privacy_audit.audits(LAYOUT, SeededNoise(1))}
    one = found["audit of occupancy"]
    assert one.held is None
    assert one.figures["bound_with_half_the_noise"] <= one.figures["claim"]
    assert attacks.summary([one], {})["all_held"] is False
    certain = replace(LAYOUT, sections=(replace(LAYOUT.by_name["durations"], epsilon=Fraction(2)),))
    assert [attack.held for attack in privacy_audit.audits(certain, SeededNoise(1))] == [True]


def test_thirty_reports_of_a_user_need_thirty_times_the_noise():
    """Sensitivity is reports per user: with noise for one report, a sum that holds thirty of a user's shows far more
    than the claim.
    """
    section = replace(LAYOUT.by_name["variability"], epsilon=Fraction(1, 5))

    def sums(reports):
        noise = SeededNoise(2)
        return lambda with_user, runs: (
            noise.draw([replace(section, rows=runs, columns=1)], f"{with_user}")
            + with_user * reports * section.contribution_bound
        )

    assert privacy_audit.audit(sums(1), 0.2, 20_000)["lower_bound"] <= 0.2
    assert privacy_audit.audit(sums(30), 0.2, 20_000)["lower_bound"] > 10 * 0.2


def test_the_audit_finds_a_mechanism_without_any_noise():
    found = privacy_audit.audit(lambda with_user, runs: np.full(runs, 5 + with_user), 1.0, 1000)
    assert found["lower_bound"] > 4


def test_an_audit_of_what_ignores_the_user_finds_nothing():
    rng = np.random.default_rng(1)
    assert privacy_audit.audit(lambda _, runs: rng.normal(size=runs), 1.0, 10_000)["lower_bound"] < 0.1


def test_all_attacks_go_as_expected():
    vectors = vectors_of(60, LAYOUT)
    assert client_attacks.poisoned_report(LAYOUT, vectors).held
    sybils = client_attacks.sybils(LAYOUT, vectors)
    assert sybils.held
    assert sybils.figures["bias"] == pytest.approx(sybils.figures["sybils"], rel=0.2)  # the bound is tight
    assert sybils.figures["beyond_bounds"] == 0
    assert attacks.reidentification(vectors, np.random.default_rng(2)).held
    farm = client_attacks.many_gpus(LAYOUT, vectors[0], 100)
    assert farm.held
    assert farm.figures["taken"] == 1


def test_sybils_that_no_client_holds_back_are_noticed(monkeypatch):
    """Group 3; the attack can fail: a layout that lets any count through, and servers that count a report twice."""
    vectors = vectors_of(30, LAYOUT)
    with monkeypatch.context() as patch:
        patch.setattr(client_attacks.ReportLayout, "check", lambda self, vector: None)
        assert not client_attacks.sybils(LAYOUT, vectors).held
    total = client_attacks.InProcessFleet.total
    monkeypatch.setattr(client_attacks.InProcessFleet, "total", lambda self: 2 * total(self))
    assert not client_attacks.sybils(LAYOUT, vectors).held


def reports_of(application, number):
    """Return the vectors of a number of equal reports: all launches in the third cell of each section's row."""
    vector = np.zeros(LAYOUT.cells, WORD)
    for section in LAYOUT.sections:
        columns = section.columns
        at = application if section.name == "applications" else application * columns + min(2, columns - 1)
        vector[section.first + at] = section.contribution_bound
    return np.tile(vector, (number, 1))


def published_shares(vectors):
    """Return the designer's shares from the sums of reports, all of the first hour, released without noise."""
    sums = vectors.sum(0, dtype=np.int64)
    first = LAYOUT.by_name["applications"].cells.stop
    traffic = np.zeros((24, first), np.int64)
    traffic[0] = sums[:first]
    made = Release(traffic=traffic, released=np.ones(24, bool), detail=sums[first:], epsilon=1.0)
    return estimate(
        made, dict.fromkeys(LAYOUT.by_name, ServerNoise(0.0)), LAYOUT, np.arange(LAYOUT.applications)
    ).distributions


def test_sybils_of_one_application_weigh_as_their_part_of_its_reports():
    """Group 3. Of 60 honest users 3 run the second application; 3 of 63 are Sybils, and half of that application's
    reports are theirs: a cell that was empty holds half of the row.
    """
    honest = np.concatenate([reports_of(0, 57), reports_of(1, 3)])
    found = client_attacks.sybils_of_one_application(LAYOUT, honest)
    assert found.held
    assert found.figures == {"sybils": 3 / 63, "sybils_of_its_reports": 0.5, "bias": 0.5}
    lie = np.zeros((3, LAYOUT.cells), WORD)
    lie[:, 1] = 1
    lie[:, LAYOUT.by_name["durations"].first + LAYOUT.by_name["durations"].columns] = 16
    LAYOUT.check(lie[0])
    before, after = (published_shares(vectors)["durations"][1] for vectors in (honest, np.concatenate([honest, lie])))
    assert before.tolist()[:3] == [0, 0, 1]
    assert after.tolist()[:3] == [0.5, 0, 0.5]


def test_sybils_of_an_application_that_nobody_measured_or_reported():
    """An empty row has no share that could move; a row with fewer counts than its reports may hold moves further."""
    none = client_attacks.sybils_of_one_application(LAYOUT, np.zeros((19, LAYOUT.cells), WORD))
    assert none.figures == {"sybils": 0.05, "sybils_of_its_reports": 1.0}
    half = reports_of(1, 19)
    section = LAYOUT.by_name["occupancy"]
    half[:, section.cells] //= section.contribution_bound  # one count each
    found = client_attacks.sybils_of_one_application(LAYOUT, half)
    assert found.held
    bound = section.contribution_bound
    assert found.figures["bias"] == pytest.approx(bound / (19 + bound))
    assert found.figures["bias"] > found.figures["sybils_of_its_reports"] == 0.05


def test_the_attack_on_one_application_can_fail(monkeypatch):
    total = client_attacks.InProcessFleet.total
    monkeypatch.setattr(client_attacks.InProcessFleet, "total", lambda self: total(self) + 1)
    assert not client_attacks.sybils_of_one_application(LAYOUT, reports_of(1, 19)).held


def test_membership_is_guessed_as_often_as_epsilon_allows_and_more_often_with_less_noise():
    """Group 15; the attack can fail: with a third of the noise the user is found more often than promised."""

    class Weak:
        simulated = True

        def draw(self, sections, purpose):
            return np.rint(SeededNoise(7).draw(sections, purpose) / 3).astype(np.int64)

    found = privacy_audit.membership(LAYOUT, SeededNoise(7))
    assert found.held
    assert 0.5 < found.figures["accuracy"] <= found.figures["most_accuracy"] + 0.02
    assert not privacy_audit.membership(LAYOUT, Weak()).held


def test_tokens_resist_guessing_only_without_the_key():
    """Group 8."""
    names = [f"kernel_{number}" for number in range(30)]
    found = attacks.dictionary(learn({"a": names[:20], "b": names[10:]}), [*names, "other"])
    assert found.held
    assert found.figures["recovered"] == 1
    assert found.figures["recovered_without_key"] == 0


def test_clusters_cannot_be_linked_over_days():
    """Group 8; with the same key on both days they could."""
    catalogue = learn({"a": ["x", "y", "z", "w"]})
    rng = np.random.default_rng(4)
    sequences = rng.integers(1, 2**63, (300, 30)).astype(np.uint64)
    assert attacks.linkage(catalogue, sequences, 12, [b"m" * 32, b"t" * 32, b"w" * 32]).held
    same = attacks.linkage(catalogue, sequences, 12, [b"m" * 32] * 2)
    assert not same.held
    assert same.figures["same_slot"] == 1


def test_names_that_imitate_another_application_count_for_it_and_once():
    """Group 11: imitation is not stopped; it is one report, inside its bounds. Random and empty names are of nobody."""
    from causeway.fleet.attribution.attribution import UNKNOWN, attribute

    suite = make_suite(3, 6, 2, 0)
    names = [[suite.names[0][kernel] for kernel in entry.body.tolist()] for entry in suite.applications]
    catalogue = learn({entry.name: sequence for entry, sequence in zip(suite.applications, names, strict=True)}, k=5)
    imitation = catalogue.tokens(names[2][:60])[None]
    assert catalogue.applications[attribute(imitation, catalogue).application[0]].name == suite.applications[2].name
    rng = np.random.default_rng(5)
    noise = catalogue.tokens([f"{rng.integers(2**60):x}" for _ in range(60)])[None]
    odd = catalogue.tokens(["", "\x00", "x" * 100_000, "\ud800", "名前", "a\nb"] * 10)[None]
    assert attribute(np.concatenate([noise, odd]), catalogue).application.tolist() == [UNKNOWN] * 2
