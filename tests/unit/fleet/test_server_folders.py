"""What a server's own folder must hold before it starts: an epoch's deployment, its joined reports, its store."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from deployment import EPOCH, RUNS, Deployment, reports_of, state_of

from causeway.core.errors import CausewayError
from causeway.fleet.deployment import public_folder


@pytest.fixture
def prepared(tmp_path):
    return Deployment(tmp_path / "d", RUNS)


def sign_again(deployed, **changes):
    """Have the designer sign the public folder anew, with other facts."""
    key = Ed25519PrivateKey.from_private_bytes((deployed.folder / "designer" / "sign.key").read_bytes())
    facts = json.loads((deployed.public / "deployment.json").read_text())
    facts.pop("files")
    public_folder.publish(deployed.public, facts | changes, key)
    return facts


def test_an_epoch_keeps_the_deployment_that_it_began_under(prepared):
    """The designer's own key signs a larger budget, another name and a lower threshold for an epoch with reports."""
    facts = sign_again(prepared)
    taken = state_of(prepared, "helper")
    for _, message in reports_of(prepared, 3):
        taken.take(message)
    signed = (prepared.public / "deployment.json").read_bytes()
    for change in (
        {"name": "again"},
        {"fleet": facts["fleet"] | {"budget": 100.0}},
        {"fleet": facts["fleet"] | {"release_threshold": 1}},
    ):
        sign_again(prepared, **change)
        with pytest.raises(CausewayError, match=r"epoch_12\.deployment: the epoch began under another deployment"):
            state_of(prepared, "helper")
        sign_again(prepared, **facts)
    assert (prepared.public / "deployment.json").read_bytes() == signed
    assert len(state_of(prepared, "helper").aggregator.serials) == 3
    sign_again(prepared, epoch=EPOCH + 1, name="later")
    assert state_of(prepared, "helper").epoch == EPOCH + 1


@pytest.mark.parametrize("begun", ["store", "closed", "joined", "ledger"])
def test_an_epoch_that_began_under_an_unknown_deployment_does_not_go_on(prepared, begun):
    """The note is gone, or the epoch began with a version that wrote none."""
    folder = prepared.folder / "helper"
    made = state_of(prepared, "helper")
    if begun == "ledger":
        made.server.ledger.release(
            "r", epoch=EPOCH, part="traffic", window=0, epsilon=made.layout.epsilon("traffic"), simulated=False,
            draw=lambda: b"noisy",
        )  # fmt: skip
    else:
        (folder / f"epoch_{EPOCH}.{begun}").write_bytes(b"")
    (folder / f"epoch_{EPOCH}.deployment").unlink()
    with pytest.raises(CausewayError, match=r"epoch_12\.deployment: is missing"):
        state_of(prepared, "helper")
    assert not (folder / f"epoch_{EPOCH}.deployment").exists()
