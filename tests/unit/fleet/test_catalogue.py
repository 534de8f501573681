"""The catalogue that clients take: signed, pinned, the same for all, and without names."""

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from fleet_samples import learn

from causeway.core.errors import CausewayError
from causeway.fleet.attribution import catalogue

SEQUENCES = {
    "secretapp_v1": ["gemm_kernel", "relu_kernel", "add_kernel", "gemm_kernel", "norm_kernel"],
    "b": ["x", "y", "z", "x", "w"],
}


@pytest.fixture
def signed():
    key = Ed25519PrivateKey.generate()
    text = learn(SEQUENCES).encoded()
    return key, text, catalogue.sign(text, key), catalogue.digest_of(text)


def test_what_was_signed_comes_back(signed):
    key, text, signature, pin = signed
    found = catalogue.verified(text, signature, key.public_key(), pin, simulation=True)
    assert found.encoded() == text
    assert [entry.name for entry in found.applications] == ["b", "secretapp_v1"]
    assert b"_kernel" not in text


def test_the_same_runs_give_the_same_bytes():
    assert learn(SEQUENCES).encoded() == learn(dict(reversed(SEQUENCES.items()))).encoded()


def test_a_changed_catalogue_is_refused(signed):
    key, text, signature, pin = signed
    with pytest.raises(CausewayError, match="signature"):
        catalogue.verified(text.replace(b"secretapp", b"otherapps"), signature, key.public_key(), pin, simulation=True)
    with pytest.raises(CausewayError, match="signature"):
        catalogue.verified(text, signature, Ed25519PrivateKey.generate().public_key(), pin, simulation=True)


def test_a_catalogue_made_for_one_user_is_refused_though_the_designer_signed_it(signed):
    """Group 10: its hash is not the published one."""
    key, _, _, pin = signed
    special = learn(SEQUENCES | {"only_this_user": ["p", "q", "r", "s"]}).encoded()
    with pytest.raises(CausewayError, match="pinned"):
        catalogue.verified(special, catalogue.sign(special, key), key.public_key(), pin, simulation=True)


def test_a_simulations_catalogue_does_not_reach_production(signed):
    key, text, signature, pin = signed
    with pytest.raises(CausewayError, match="simulation"):
        catalogue.verified(text, signature, key.public_key(), pin)


@pytest.mark.parametrize("text", [b"", b"{}", b"[]", b'{"form": "another"}', b"\xff\x00"])
def test_what_is_no_catalogue_is_refused(text):
    with pytest.raises(CausewayError, match="catalogue"):
        catalogue.decode(text)


def test_no_run_no_catalogue():
    with pytest.raises(CausewayError, match="empty"):
        learn({})


def test_top_kernels_are_those_with_most_time():
    import numpy as np

    run = catalogue.TrainingRun(
        application="a", family="a", version="", names=["x", "y", "z", "x"], durations=np.array([1.0, 10.0, 3.0, 1.0])
    )
    found = catalogue.build([run], key=b"k", k=2, threshold=0.5, margin=0.0, slots=3, simulated=True)
    assert found.applications[0].kernels.tolist() == found.tokens(["y", "z"]).tolist()
