"""What the issuer remembers of tokens, and what an agent that was interrupted sends again."""

import json
import os
import re

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from deployment import EPOCH, RUNS, Deployment

from causeway.core.errors import CausewayError
from causeway.fleet.deployment import agent, deploy


@pytest.fixture
def prepared(tmp_path):
    return Deployment(tmp_path / "d", RUNS)


@pytest.mark.parametrize("content", [None, b"", b'{"a": 1', b"[]", b'{"a": "1"}', b"\xff\xfe"], ids=str)
def test_an_issuers_record_that_is_damaged_or_gone_gives_no_second_token(prepared, content):
    """Whoever deletes a damaged record, as is right for results, must not find the users' tokens unspent."""
    prepared.token("alice")
    record = prepared.folder / "issuer" / f"issued_{EPOCH}.json"
    kept = record.read_bytes()
    record.unlink()
    if content is not None:
        record.write_bytes(content)
    for user in ("alice", "bob"):
        with pytest.raises(CausewayError, match=r"issued_12\.json: .*restore it from a copy and never delete it"):
            prepared.token(user)
    assert record.exists() == (content is not None)
    record.write_bytes(kept)
    with pytest.raises(CausewayError, match="has had 1 tokens"):
        prepared.token("alice")
    assert prepared.token("bob")["epoch"] == EPOCH


def test_an_epoch_without_a_record_and_an_earlier_versions_record_begin_one(prepared):
    folder = prepared.folder / "issuer"
    assert len(deploy.issue(folder, "alice", 7, 1)) == 1
    (folder / "issued_7.begun").unlink()  # as an earlier version left it
    assert len(deploy.issue(folder, "bob", 7, 1)) == 1
    assert len(json.loads((folder / "issued_7.json").read_text())) == 2
    (folder / "issued_7.json").unlink()
    with pytest.raises(CausewayError, match=r"issued_7\.json: is missing"):
        deploy.issue(folder, "carol", 7, 1)


def record_of(deployed):
    """Return how many users the issuer has given tokens of the epoch."""
    path = deployed.folder / "issuer" / f"issued_{EPOCH}.json"
    return len(json.loads(path.read_text())) if path.exists() else 0


def test_a_token_that_cannot_be_written_is_not_booked(prepared, tmp_path, monkeypatch):
    issuer = prepared.folder / "issuer"
    blocked = tmp_path / "a file"
    blocked.write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for out in (blocked / "token.json", tmp_path, tmp_path / "pipe"):
        with pytest.raises(CausewayError, match=re.escape(str(out))):
            deploy.give(issuer, "alice", EPOCH, out)
    with monkeypatch.context() as patched:
        patched.setattr(deploy, "on_disk", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(CausewayError, match=r"token\.json: cannot be written \(No space left on device\)"):
            deploy.give(issuer, "alice", EPOCH, tmp_path / "token.json")
    assert record_of(prepared) == 0
    assert list(tmp_path.glob("token*")) == []
    deploy.give(issuer, "alice", EPOCH, tmp_path / "token.json")
    assert record_of(prepared) == 1
    assert (tmp_path / "token.json").stat().st_mode & 0o777 == 0o600


def test_a_token_comes_back_from_its_file_and_a_refusal_leaves_it(prepared, tmp_path):
    out = tmp_path / "token.json"
    deploy.give(prepared.folder / "issuer", "alice", EPOCH, out)
    content = out.read_bytes()
    with pytest.raises(CausewayError, match="has had 1 tokens"):
        deploy.give(prepared.folder / "issuer", "alice", EPOCH, out)
    assert out.read_bytes() == content
    (token,) = agent.read_tokens(out)
    key = Ed25519PublicKey.from_public_bytes((prepared.public / "issuer.pub").read_bytes())
    serial = bytes.fromhex(token["serial"])
    key.verify(bytes.fromhex(token["signature"]), b"causeway-fleet-token/1" + EPOCH.to_bytes(4, "little") + serial)


@pytest.mark.parametrize("same", [("caf\u00e9", "cafe\u0301"), ("alice", " alice\n")], ids=["composed", "spaces"])
def test_one_user_in_two_spellings_gets_one_token(prepared, same):
    prepared.token(same[0])
    with pytest.raises(CausewayError, match="has had 1 tokens"):
        prepared.token(same[1])
    prepared.token("cafe")
    prepared.token("Alice")


@pytest.mark.parametrize(
    ("user", "epoch", "message"),
    [
        ("", EPOCH, "name is empty"),
        (" \t", EPOCH, "name is empty"),
        ("\udcff\udcfe", EPOCH, "no UTF-8"),
        ("alice", -1, "epoch -1 is none"),
        ("alice", 1 << 32, "epoch 4294967296 is none"),
    ],
)
def test_nobody_and_epochs_that_cannot_be_get_no_token(prepared, user, epoch, message):
    with pytest.raises(CausewayError, match=message):
        deploy.issue(prepared.folder / "issuer", user, epoch, 1)
    assert record_of(prepared) == 0
