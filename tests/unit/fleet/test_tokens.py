"""Names become tokens, tokens become grams, and sequences are told apart by them."""

import hashlib
import hmac

import numpy as np
import pytest
from fleet_samples import learn

from causeway.fleet.attribution.attribution import UNKNOWN, attribute, cluster, scores
from causeway.fleet.attribution.tokens import canonical, grams_of, tokens_of


def sequence(rng, kernels, n=60):
    return [f"kernel_{kernel}" for kernel in rng.integers(0, kernels, n).tolist()]


def test_a_token_is_the_keyed_hash_of_the_name():
    name = "void at::native::reduce_kernel<512>(float*)"
    expected = hmac.new(b"key", canonical(name).encode(), hashlib.sha256).digest()[:8]
    assert tokens_of([name], b"key").tobytes() == expected
    assert tokens_of([name], b"other key").tobytes() != expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ampere_sgemm_128x64_tn", "hopper_sgemm_64x32_tn"),
        ("sm80_xmma_gemm_f32f32_tn_n_tilesize128x128x16_stage4", "sm90_xmma_gemm_f32f32_tn_n_tilesize64x128x32_stage3"),
    ],
)
def test_generations_and_tile_sizes_do_not_change_a_token(one, other):
    assert canonical(one) == canonical(other)


def test_other_differences_do_change_it():
    assert canonical("ampere_sgemm_tn") != canonical("ampere_hgemm_tn")
    assert canonical("f<float>") != canonical("f<half>")


def test_a_long_name_costs_little_and_is_told_from_others():
    one, other = tokens_of(["sm80_" * 20_000, "sm80_" * 20_000 + "x"], b"key")
    assert one != other


def test_grams_are_of_k_launches_and_skip_the_end_of_short_sequences():
    tokens = np.array([[1, 2, 3, 1, 2, 3, 0, 0]], np.uint64)
    grams = grams_of(tokens, 3)
    assert grams.shape == (1, 6)
    assert grams[0, 0] == grams[0, 3] != grams[0, 1]
    assert (grams[0, 4:] == 0).all()
    assert grams_of(tokens[:, :2], 3).shape == (1, 0)
    assert grams_of(np.array([2, 1, 3], np.uint64), 3)[0] != grams[0, 0]  # order counts


def test_the_score_is_the_weighted_share_of_grams():
    """One application with one gram of its own, one that both have; weights log(3 / 1) and log(3 / 2)."""
    found = learn({"a": ["x", "y", "z", "w"], "b": ["x", "y", "z"]})
    tokens = found.tokens(["x", "y", "z", "w"])[None]
    own = np.log(3)
    shared = np.log(3 / 2)
    assert scores(tokens, found)[0].tolist() == pytest.approx([1.0, shared / (own + shared)])
    stranger = found.tokens(["x", "y", "z", "q"])[None]
    assert scores(stranger, found)[0].tolist() == pytest.approx([shared / (shared + np.log(3))] * 2)


def test_a_repeated_gram_counts_once():
    found = learn({"a": ["x", "y", "z", "w"], "b": ["p", "q", "r"]})
    once, often = (found.tokens(names)[None] for names in (["x", "y", "z", "w"], ["x", "y", "z"] * 5))
    assert scores(often, found)[0, 0] < scores(once, found)[0, 0]
    twice = found.tokens(["x", "y", "z", "x", "y", "z"])[None]
    assert scores(twice, found)[0, 0] == pytest.approx(1 / 3)  # of three distinct grams it knows one


def test_known_sequences_are_found_and_strangers_rejected():
    rng = np.random.default_rng(1)
    sequences = {f"app{number}": sequence(rng, 30) for number in range(6)}
    found = learn(sequences)
    names = [entry.name for entry in found.applications]
    tokens = np.array([found.tokens(sequences[name][5:45]) for name in names])
    assert attribute(tokens, found).application.tolist() == list(range(6))
    strangers = np.array([found.tokens(sequence(rng, 30)[:40]) for _ in range(20)])
    assert (attribute(strangers, found).application == UNKNOWN).all()


def test_a_new_version_is_of_its_family_but_of_no_known_version():
    rng = np.random.default_rng(2)
    base = sequence(rng, 200, 200)
    versions = {
        f"fam_v{number}": [*base[: 40 * number], *(f"v{number}_{i}" for i in range(20)), *base[40 * number + 20 :]]
        for number in (1, 2)
    }
    found = learn(versions | {"other_v1": sequence(rng, 200, 200)})
    new = found.tokens([f"new_{i}" if i % 12 == 0 else name for i, name in enumerate(base)])[None]
    decided = attribute(new, found)
    assert decided.application[0] == UNKNOWN
    assert found.families[decided.family[0]] == "fam"


def test_empty_and_very_short_sequences_are_of_nobody():
    found = learn({"a": ["x", "y", "z", "w"]})
    assert attribute(np.zeros((2, 10), np.uint64), found).application.tolist() == [UNKNOWN] * 2
    assert attribute(found.tokens(["x", "y"])[None], found).application.tolist() == [UNKNOWN]
    assert len(attribute(np.zeros((0, 10), np.uint64), found).application) == 0


def test_clusters_depend_on_the_epoch_and_gather_what_is_alike():
    found = learn({"a": ["x", "y", "z", "w"]})
    rng = np.random.default_rng(3)
    unknown = [found.tokens(sequence(rng, 40)) for _ in range(40)]
    monday = b"m" * 32
    tuesday = b"t" * 32
    slots = [cluster(tokens, found, monday, 12) for tokens in unknown]
    assert slots == [cluster(tokens, found, monday, 12) for tokens in unknown]
    assert len(set(slots)) > 6
    assert slots != [cluster(tokens, found, tuesday, 12) for tokens in unknown]
    shifted = [cluster(np.roll(tokens, 7), found, monday, 12) for tokens in unknown]
    assert np.mean(np.array(shifted) == np.array(slots)) > 0.7
