"""What the issuer remembers of tokens, and what an agent that was interrupted sends again."""

import json

import pytest
from deployment import EPOCH, RUNS, Deployment

from causeway.core.errors import CausewayError
from causeway.fleet.deployment import deploy


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
