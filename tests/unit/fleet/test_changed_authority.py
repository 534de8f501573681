"""The authority of certificates is the one that was checked: its file may be another one a moment later."""

import contextlib
import socket
import ssl
import threading

import numpy as np
import pytest
from deployment import RUNS, Deployment, reports_of, state_of

from causeway.core.errors import CausewayError
from causeway.fleet.deployment import agent, reader, server, store, transport
from causeway.fleet.report_layout import WORD


@pytest.fixture
def prepared(tmp_path):
    return Deployment(tmp_path / "d", RUNS)


@pytest.fixture
def stranger(tmp_path):
    """Return the folder of another authority, with a certificate for a leader."""
    folder = tmp_path / "stranger"
    folder.mkdir()
    transport.make_certificates(folder, [transport.Party("leader", folder)])
    return folder


@contextlib.contextmanager
def leader_with(authority, own, port, windows):
    """Answer one request for serials as a leader with a certificate of its own."""
    secure = transport.context(authority, transport.Party("leader", own), serving=True)
    secure.verify_mode = ssl.CERT_NONE

    def answer():
        connection, _ = plain.accept()
        with contextlib.suppress(OSError), secure.wrap_socket(connection, server_side=True) as one:
            transport.receive(one)
            transport.send(one, server.ANSWER, store.packed_windows(windows))

    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        plain.bind(("127.0.0.1", port))
        plain.listen()
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield
        thread.join(10)


def test_a_server_trusts_the_authority_that_was_signed_when_it_started(prepared, stranger):
    made = state_of(prepared, "helper")
    for _, message in reports_of(prepared, 3):
        made.take(message)
    moved = dict.fromkeys(made.aggregator.serials, 7)
    path = prepared.public / "authority.pem"
    signed = path.read_bytes()
    path.write_bytes((stranger / "authority.pem").read_bytes())
    with (
        leader_with(stranger, stranger, prepared.ports[0], moved),
        pytest.raises(CausewayError, match="no connection to the leader"),
    ):
        made.join()
    assert made.joined is None
    kept = stranger / "kept"
    kept.mkdir()
    (kept / "authority.pem").write_bytes(signed)
    with leader_with(kept, prepared.folder / "leader", prepared.ports[0], moved):
        assert made.join() == moved


@pytest.mark.parametrize("program", ["agent", "reader"])
def test_agent_and_reader_connect_with_the_authority_that_they_checked(prepared, stranger, monkeypatch, program):
    """The file is changed as soon as its hash was compared."""
    path = prepared.public / "authority.pem"
    signed = path.read_bytes()
    verified = agent.read_verified

    def changed(*args, **options):
        path.write_bytes((stranger / "authority.pem").read_bytes())
        return verified(*args, **options)

    used = []

    def context(authority, party, serving):
        used.append(authority if isinstance(authority, bytes) else (authority / "authority.pem").read_bytes())
        raise OSError("no further")

    token = prepared.token("somebody")
    monkeypatch.setattr(agent, "read_verified", changed)
    monkeypatch.setattr(agent, "sample", lambda tables, launches: None)
    monkeypatch.setattr(agent, "vector_of", lambda window, parameters: np.zeros(parameters.layout.cells, WORD))
    monkeypatch.setattr(transport, "context", context)
    programs = {
        "agent": lambda: agent.report(prepared.folder, prepared.public, token, prepared.ports, prepared.pin),
        "reader": lambda: reader.read(
            prepared.public, prepared.folder / "designer", prepared.ports, prepared.folder / "out"
        ),
    }
    with pytest.raises(CausewayError, match="no connection to the leader"):
        programs[program]()
    assert path.read_bytes() != signed
    assert used == [signed]
