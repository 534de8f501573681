"""What the issuer remembers of tokens, and what an agent that was interrupted sends again."""

import contextlib
import json
import os
import re

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from deployment import EPOCH, RUNS, Deployment, reports_of, state_of

from causeway.core.errors import CausewayError
from causeway.fleet.deployment import agent, deploy, server, store
from causeway.fleet.protection.envelope import decode
from causeway.fleet.report_layout import WORD


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


@pytest.mark.parametrize("letter", ["\u200b", "\u00ad", "\u202e", "\x00", "\u2028"], ids=ascii)
def test_a_name_with_a_character_that_cannot_be_seen_gets_no_token(prepared, letter):
    prepared.token("alice")
    with pytest.raises(CausewayError, match="cannot be seen"):
        prepared.token(f"ali{letter}ce")


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


@pytest.fixture
def one_report(monkeypatch):
    """Have agents report the first application, with no tables."""
    monkeypatch.setattr(agent, "sample", lambda tables, launches: None)
    monkeypatch.setattr(
        agent, "vector_of", lambda window, parameters: np.eye(1, parameters.layout.cells, dtype=WORD)[0]
    )


def test_a_report_that_arrived_by_half_is_finished_with_the_same_messages(prepared, tmp_path, one_report):
    """Group 5: the leader has its share, the helper was out of reach; a new sample's share would not fit to it."""
    kept = tmp_path / "token.json.messages"

    def report(name="half"):
        return agent.report(tmp_path, prepared.public, tokens[name], prepared.ports, prepared.pin, kept=kept)

    def stored(role):
        folder = prepared.folder / role
        return [message for message, _ in store.ReportStore(folder, EPOCH, 24).messages()]

    tokens = {name: prepared.token(name) for name in ("half", "whole")}
    with prepared.running():
        prepared.kill("helper")
        with pytest.raises(CausewayError, match="no connection to the helper"):
            report()
        assert kept.stat().st_mode & 0o777 == 0o600
        first = [bytes.fromhex(message) for message in json.loads(kept.read_text())["messages"]]
        prepared.start("helper")
        assert report()["bytes"] == sum(map(len, first))
        assert not kept.exists()
        assert [stored("leader"), stored("helper")] == [[first[0]], [first[1]]]
        for _ in range(2):  # a second report of the token, not the same messages, also when it is sent again
            with pytest.raises(CausewayError, match=r"used for another report, .*\(duplicate\)$"):
                report()
        report("whole")
        assert [len(stored("leader")), len(stored("helper"))] == [2, 2]


def test_messages_of_another_token_are_not_sent_and_damaged_ones_are_named(prepared, tmp_path, one_report, monkeypatch):
    sent = []
    monkeypatch.setattr(agent, "send", lambda messages, authority, ports: sent.append(messages) or 1)
    kept = tmp_path / "messages"
    serials = {"one": prepared.token("one"), "two": prepared.token("two")}

    def report(name):
        agent.report(tmp_path, prepared.public, serials[name], prepared.ports, prepared.pin, kept=kept)

    monkeypatch.setattr(type(kept), "unlink", lambda path: None)
    for name in ("one", "one", "two"):
        report(name)
    assert sent[1] == sent[0]
    assert [decode(messages[0]).serial.hex() for messages in sent] == [
        serials[name]["serial"] for name in ("one", "one", "two")
    ]
    for content in (b"", b"[]", b"{}", b'{"serial": "00", "messages": ["00"]}', b"\xff"):
        kept.write_bytes(content)
        with pytest.raises(CausewayError, match="messages: holds no messages of an earlier try"):
            report("two")
    assert len(sent) == 3


def test_a_server_with_a_full_disk_says_so_to_the_agent_and_in_its_log(prepared, monkeypatch, caplog):
    """Group 21: the log had nothing, and the agent's connection was closed."""
    made = state_of(prepared, "leader")
    one, _ = reports_of(prepared, 1)[0]
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        kind, words = server._answer(made, None, server.REPORT, one)
    assert (kind, words) == (
        server.FAILED,
        b"the leader cannot write to its disk, so that this does not count; try later",
    )
    assert f"leader: its folder {prepared.folder / 'leader'} or its anchor cannot be written (No space" in caplog.text
    assert decode(one).serial.hex() not in caplog.text
    assert made.aggregator.serials == frozenset()
    assert server._answer(made, None, server.REPORT, one) == (server.TAKEN, b"")


def test_a_server_says_whether_it_has_this_share_or_another_of_the_token(prepared):
    """Whoever goes on to the helper after another share's `duplicate` would add noise of 32 bits to each cell."""
    made = state_of(prepared, "leader")
    known = agent.read_public_parameters(prepared.public, prepared.pin)
    token = prepared.token("somebody")
    vector = np.eye(1, known.layout.cells, dtype=WORD)[0]
    serial, signature = (bytes.fromhex(token[name]) for name in ("serial", "signature"))
    one, other = (known.client.messages(vector, lambda _: signature, serial=serial)[0] for _ in range(2))
    assert server._answer(made, None, server.REPORT, one) == (server.TAKEN, b"")
    for _ in range(2):
        assert server._answer(made, None, server.REPORT, other) == (server.REFUSED, b"duplicate")
        assert server._answer(made, None, server.REPORT, one) == (server.REFUSED, b"duplicate of the same share")
        made = state_of(prepared, "leader")
    assert len(made.aggregator.serials) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"[]", b"1", b'{"serial": "00"}', b'{"serial": "zz", "signature": "qq"}', b"\xff\xfe",
        b'{"serial": "00", "signature": "00"}', b'{"serial": 1, "signature": 2}', None,
    ],
    ids=str,
)  # fmt: skip
def test_a_file_without_tokens_is_named(tmp_path, content):
    path = tmp_path / "token.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CausewayError, match=r"token\.json: holds no tokens"):
        agent.read_tokens(path)


def test_a_full_server_still_knows_what_it_has(tmp_path):
    """The report that filled the leader goes on to the helper when it is sent again."""
    own = Deployment(tmp_path / "own", RUNS, most_reports=5)
    made = state_of(own, "leader")
    sent = [one for one, _ in reports_of(own, 6)]
    answers = [server._answer(made, None, server.REPORT, message) for message in sent]
    assert answers == [(server.TAKEN, b"")] * 5 + [(server.REFUSED, b"full")]
    assert server._answer(made, None, server.REPORT, sent[4]) == (server.REFUSED, b"duplicate of the same share")
    assert len(made.aggregator.serials) == len(list(made.store.messages())) == 5
    assert json.loads(made.status())["refused"] == {"full": 1, "duplicate of the same share": 1}


@pytest.mark.parametrize(
    ("reason", "meaning"),
    [
        ("early", r"has not begun by its clock; run this again later \(early\)$"),
        ("late", r"the epoch is over; get a token of the next one \(late\)$"),
        ("closed", r"the designer has ended the epoch; get a token of the next one \(closed\)$"),
        ("full", r"takes no more reports in this epoch; .* \(full\)$"),
        ("token", r"the issuer signed no such token for this epoch; .* \(token\)$"),
        ("layout", r"not one of this deployment; fetch the public folder again \(layout\)$"),
    ],
)
def test_an_agent_says_what_a_refusal_means(reason, meaning, monkeypatch):
    """A single word was all."""
    answer = server.REFUSED, reason.encode()
    monkeypatch.setattr(agent.transport, "connected", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(agent.transport, "send", lambda *_: None)
    monkeypatch.setattr(agent.transport, "receive", lambda _: answer)
    with pytest.raises(CausewayError, match=f"^the leader refuses the report: .*{meaning}"):
        agent.send((b"one", b"other"), b"", (1, 2))
    answer = server.REFUSED, b"duplicate of the same share"
    assert agent.send((b"one", b"other"), b"", (1, 2)) == 8


def test_a_report_outside_its_epochs_time_is_refused_and_counted(prepared, monkeypatch):
    """24 windows of an hour from the deployment's beginning on; the server's clock is set to each time in turn."""
    begun = json.loads((prepared.public / "deployment.json").read_text())["begun"]
    taken = state_of(prepared, "helper")
    answers = []
    for (_, message), second in zip(reports_of(prepared, 6), (-1, 0, 3599.5, 3600.5, 86_399.5, 86_400.5), strict=True):
        monkeypatch.setattr(server.time, "time", lambda now=begun + second: now)
        answers.append(server._answer(taken, None, server.REPORT, message))
    refused = [(server.REFUSED, b"early"), (server.REFUSED, b"late")]
    assert answers == [refused[0], *[(server.TAKEN, b"")] * 4, refused[1]]
    assert sorted(taken.aggregator.windows.values()) == [0, 0, 1, 23]
    assert json.loads(taken.status()) == {"open": True, "refused": {"early": 1, "late": 1}, "reports": 4}
    assert sorted(window for _, window in taken.store.messages()) == [0, 0, 1, 23]
