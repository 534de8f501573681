import numpy as np
import pytest
from causal_documents import arrow, outcome

from causeway.causal.discovery.arrows import arrow_verdict, detectable_share, robustness_value
from causeway.causal.selection.linear_model import benjamini_bogomolov, bonferroni, simes


def test_simes_by_hand():
    assert simes([0.03, 0.02, 0.9]) == pytest.approx(0.045)
    assert simes([]) == 1
    assert simes([1.0]) == 1
    assert simes([0.2, 0.2]) == pytest.approx(0.2)


def test_adjusted_p_values_are_bounded():
    assert bonferroni(1e-4, 50) == pytest.approx(0.005)
    assert bonferroni(0.5, 50) == 1
    assert benjamini_bogomolov(0.01, 2, 8) == pytest.approx(0.04)
    assert benjamini_bogomolov(0.01, 8, 8) == 0.01
    assert benjamini_bogomolov(0.5, 1, 8) == 1
    assert benjamini_bogomolov(0.01, 0, 8) == pytest.approx(0.08)  # none selected: as if one were
    assert bonferroni(0.3, 1) == 0.3
    assert bonferroni(0.3, 0) == 0.3


@pytest.mark.parametrize("effect", [0.1, 0.5, 2.0])
def test_a_hidden_cause_as_strong_as_the_robustness_value_undoes_the_effect(effect):
    """By the bias of a confounder (Cinelli and Hazlett 2020, equation 4): R^2 with cause and target both this value, the
    bias is R^2 / sqrt(1 - R^2) standard deviations of the residual per one of the cause, and the effect is f.
    """
    strength = robustness_value(effect**2 / (1 + effect**2))
    assert strength / np.sqrt(1 - strength) == pytest.approx(effect)


def test_no_partial_r2_is_beyond_its_bounds():
    assert robustness_value(-0.1) == 0
    assert robustness_value(1.1) == 1
    assert robustness_value(0.999999) < 1


def test_robustness_value_of_the_published_example():
    # C. Cinelli and C. Hazlett 2020, section 4: exposure to violence in Darfur, partial R^2 2.2 %, robustness value
    # 13.9 %
    assert robustness_value(0.02187) == pytest.approx(0.139, abs=5e-4)
    assert robustness_value(0) == 0
    assert robustness_value(1) == 1


def test_the_detectable_share_is_detected_four_times_in_five():
    from scipy.stats import f as f_distribution

    n = 400
    tests = 20
    share = detectable_share(n, tests)
    rng = np.random.default_rng(2)
    x = rng.standard_normal((n, 3))
    found = 0
    for _ in range(400):
        y = x @ np.full(3, np.sqrt(share / (1 - share) / 3)) + rng.standard_normal(n)
        design = np.column_stack([np.ones(n), x])
        rest = ((y - design @ np.linalg.lstsq(design, y, rcond=None)[0]) ** 2).sum()
        total = ((y - y.mean()) ** 2).sum()
        found += f_distribution.sf((total - rest) / 3 / (rest / (n - 4)), 3, n - 4) < 0.01 / tests
    assert found / 400 == pytest.approx(0.8, abs=0.08)


@pytest.mark.parametrize("tests", [0, 1, 2, 20])
def test_the_detectable_share_has_the_power_of_its_distribution(tests):
    """Noncentral chi-squared beyond the critical value of F, at 1 % over the tests; none counts as one."""
    from scipy.stats import f, ncx2

    n = 400
    share = detectable_share(n, tests)
    critical = 3 * f.isf(0.01 / max(tests, 1), 3, n - 4)
    assert ncx2.sf(critical, 3, n * share / (1 - share)) == pytest.approx(0.8, abs=1e-6)


def test_verdicts():
    assert arrow_verdict(99, 49.0, "exposure") == "inconclusive"
    assert arrow_verdict(100, 1.0, "exposure") == "supported"
    assert arrow_verdict(50, 50.0, "exposure") == "supported"
    assert arrow_verdict(49, 99.0, "exposure") == "inconclusive"
    assert arrow_verdict(99, 99.0, "clock") == arrow_verdict(99, 99.0, "lag") == "inconclusive"
    assert arrow_verdict(8, 1.0, "lever", between=True) == "supported"
    for of_arrows, of_graph in (
        ([], "inconclusive"),
        (["inconclusive", "supported"], "supported"),
        (["inconclusive", "refuted"], "inconclusive"),
        (["refuted", "refuted"], "refuted"),
    ):
        arrows = [arrow(f"x{number}", verdict=verdict) for number, verdict in enumerate(of_arrows)]
        assert outcome("k", 1e-9, arrows).verdict == of_graph
