"""What a server's own folder must hold before it starts: an epoch's deployment, its joined reports, its store; and that
the public folder's authority is the one that was checked, though its file may be another one a moment later.
"""

import contextlib
import json
import os
import socket
import ssl
import threading
from fractions import Fraction

import deployment
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from deployment import EPOCH, RUNS, SETTINGS, Deployment, reports_of, state_of

from causeway.core.errors import CausewayError
from causeway.fleet.__main__ import arguments
from causeway.fleet.deployment import agent, public_folder, reader, server, store, transport
from causeway.fleet.protection.ledger import Ledger, LedgerError
from causeway.fleet.release.release import Request
from causeway.fleet.report_layout import TRAFFIC, WORD


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


def released_window(deployed, window=0):
    """Release one window of eight joined reports; return the state and the path of the joined set."""
    made = state_of(deployed, "helper")
    for _, message in reports_of(deployed, 8):
        made.take(message)
    made.joined = dict.fromkeys(made.aggregator.serials, window)
    made.store.fix_joined(made.joined)
    assert made.release(Request(EPOCH, TRAFFIC, window))
    return made, deployed.folder / "helper" / f"epoch_{EPOCH}.joined"


def test_a_joined_set_that_is_lost_or_changed_after_a_release_is_not_replaced(prepared):
    """Without it the other server would say anew in which window each report is: once for each restart."""
    made, path = released_window(prepared)
    kept = path.read_bytes()
    moved = store.packed_windows(dict.fromkeys(made.joined, 1))
    for content in (None, moved, kept[17:], kept[:-1]):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        with pytest.raises(CausewayError, match=r"epoch_12\.joined: is missing or changed"):
            state_of(prepared, "helper")
    path.write_bytes(kept)
    assert state_of(prepared, "helper").joined == made.joined


def test_a_joined_set_that_was_not_released_from_is_asked_for_again(prepared):
    made = state_of(prepared, "helper")
    made.store.fix_joined({b"s" * 16: 3})
    assert state_of(prepared, "helper").joined == {b"s" * 16: 3}
    (prepared.folder / "helper" / f"epoch_{EPOCH}.joined").unlink()
    assert state_of(prepared, "helper").joined is None


def test_the_ledger_takes_one_joined_set_an_epoch(tmp_path):
    """Windows cost their largest epsilon because they share no report; of two joined sets they may."""
    ledger = Ledger(tmp_path / "l", [], Fraction(1), 0.0, simulated=False)

    def release(name, joined, window, epoch=1):
        return ledger.release(
            name, epoch=epoch, part="p", window=window, epsilon=Fraction(1, 2), simulated=False,
            draw=name.encode, joined=joined,
        )  # fmt: skip

    assert release("a", "one", 0) == b"a"
    assert release("b", "one", 1) == b"b"
    for other in ("two", None):
        with pytest.raises(LedgerError, match="other joined reports"):
            release("c", other, 2)
        assert not (tmp_path / "l" / "c.release").exists()
    assert len(ledger.entries()) == 2
    assert release("a", "two", 0) == b"a"  # those bytes were released before
    assert release("d", "two", 2, epoch=2) == b"d"


MESSAGES = [(b"first", 0), (b"", 23), (b"third message", 5)]


@pytest.fixture
def stored(tmp_path):
    """Return a store of three messages, and the bytes of its file."""
    kept = store.ReportStore(tmp_path, 1, 24)
    for message, window in MESSAGES:
        kept.append(message, window)
    return kept, kept.path.read_bytes()


def test_any_flipped_bit_of_a_store_is_noticed_and_nothing_is_cut_off(stored):
    """Each bit in turn: a wrong length looks like an unfinished record, whose removal takes all later ones with it."""
    kept, content = stored
    assert list(kept.messages()) == MESSAGES
    assert len(content) > sum(len(message) for message, _ in MESSAGES)
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        kept.path.write_bytes(changed)
        with pytest.raises(CausewayError, match=r"epoch_1\.store: the report at byte \d+ is damaged; restore"):
            list(kept.messages())
        assert kept.path.read_bytes() == changed


def test_a_record_that_was_not_finished_is_cut_off_at_any_byte(stored):
    kept, content = stored
    ends = [0]
    for message, _ in MESSAGES:
        ends.append(ends[-1] + 13 + len(message))
    assert ends[-1] == len(content)
    for size in range(len(content) + 1):
        whole = sum(end <= size for end in ends) - 1
        kept.path.write_bytes(content[:size])
        again = store.ReportStore(kept.path.parent, 1, 24)
        assert list(again.messages()) == MESSAGES[:whole]
        assert kept.path.read_bytes() == content[: ends[whole]]
        again.append(b"later", 3)
        assert list(again.messages()) == [*MESSAGES[:whole], (b"later", 3)]


def test_a_window_that_the_epoch_has_not_is_damage(stored):
    kept, _ = stored
    assert len(list(store.ReportStore(kept.path.parent, 1, 24).messages())) == 3
    with pytest.raises(CausewayError, match="damaged"):
        list(store.ReportStore(kept.path.parent, 1, 23).messages())


def test_a_server_does_not_start_without_reports_that_it_acknowledged(prepared):
    made = state_of(prepared, "helper")
    for _, message in reports_of(prepared, 3):
        made.take(message)
    content = made.store.path.read_bytes()
    key = prepared.folder / "helper" / "seal.key"
    own = key.read_bytes()
    key.write_bytes((prepared.folder / "leader" / "seal.key").read_bytes())
    with pytest.raises(CausewayError, match=r"epoch_12\.store: a stored report is refused now \(seal\)"):
        state_of(prepared, "helper")
    key.write_bytes(own)
    made.store.path.write_bytes(content[:6] + b"\xff" + content[7:])
    with pytest.raises(CausewayError, match=r"epoch_12\.store: the report at byte 0 is damaged"):
        state_of(prepared, "helper")
    made.store.path.write_bytes(content + content)  # a retry after a failed cut: the first one counts
    assert state_of(prepared, "helper").aggregator.windows == made.aggregator.windows


def remove(path):
    path.unlink()


def write(content):
    return lambda path: path.write_bytes(content)


def replace_by_folder(path):
    path.unlink(missing_ok=True)
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("pin", remove, r"pin: cannot be read \(No such file"),
        ("pin", write(b"\xff\xfe\x00"), r"pin: cannot be read"),
        ("seal.key", remove, r"seal\.key: cannot be read \(No such file"),
        ("seal.key", write(b"12"), r"seal\.key: cannot be read"),
        ("helper.key", remove, r"helper\.key: no readable certificate with its key \(No such file"),
        ("helper.pem", write(b"x"), r"helper\.pem, .*: no readable certificate with its key"),
        (f"epoch_{EPOCH}.store", replace_by_folder, r"epoch_12\.store: cannot be read \(Is a directory"),
        (f"epoch_{EPOCH}.joined", write(b"x"), r"epoch_12\.joined: is damaged, and nothing of it was released"),
        ("lock", replace_by_folder, r"helper: cannot be written \(Is a directory"),
    ],
)  # fmt: skip
def test_a_server_names_the_file_that_keeps_it_from_starting(prepared, monkeypatch, name, damage, message):
    """Each was a traceback."""
    monkeypatch.setattr(os, "umask", lambda mode: mode)
    monkeypatch.setattr(server._Listener, "serve_forever", lambda *_, **__: None)
    state = state_of(prepared, "helper")
    damage(prepared.folder / "helper" / name)
    with pytest.raises(CausewayError, match=message):
        server.serve(state.options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window_s": 0.0}, "a window of 0 s is none"),
        ({"window_s": float("nan")}, "a window of nan s is none"),
        ({"epoch": 1 << 32}, "epoch 4294967296 is none"),
        ({"most_reports": 4}, r"at most 4 reports would be taken, fewer than fleet/release_threshold, 5"),
        ({"name": "../elsewhere"}, r"the fleet's name '\.\./elsewhere': expected"),
        ({"name": ""}, "the fleet's name '': expected"),
    ],
)
def test_a_deployment_that_could_not_be_released_is_not_prepared(tmp_path, changes, message):
    """Each was accepted; agents then reported for a whole epoch, or got "malformed request"."""
    with pytest.raises(CausewayError, match=message):
        Deployment(tmp_path / "d", RUNS, **changes)
    assert not (tmp_path / "d").exists()


def test_a_deployment_whose_sections_cost_more_than_its_budget_is_not_prepared(tmp_path, prepared, monkeypatch):
    """The ledger would have refused the day's detail after the epoch had ended, for good. Sections cost 1 together."""
    for change, message in (
        ({"budget": 0.9}, "the sections cost 1 together, more than fleet/budget, 0.9"),
        ({"timed_launches": 65}, "fleet/timed_launches: 65, more than fleet/launches, 64"),
    ):
        monkeypatch.setattr(deployment, "SETTINGS", SETTINGS | change)
        with pytest.raises(CausewayError, match=message):
            Deployment(tmp_path / "other", RUNS)
    monkeypatch.setattr(deployment, "SETTINGS", SETTINGS)
    with pytest.raises(CausewayError, match="d: holds a deployment already"):
        Deployment(prepared.folder, RUNS)


def test_a_server_takes_no_fleets_name_that_is_a_path(prepared):
    """The designer signs it, and it names files of the server's ledger."""
    sign_again(prepared, name="../../elsewhere")
    with pytest.raises(CausewayError, match=r"the fleet's name '\.\./\.\./elsewhere': expected up to 64"):
        state_of(prepared, "helper")


def test_a_port_in_use_is_named(prepared, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mode: mode)
    state = state_of(prepared, "helper")
    with socket.socket() as other:
        other.bind(("127.0.0.1", prepared.ports[1]))
        other.listen()
        with pytest.raises(CausewayError, match=f"port {prepared.ports[1]} cannot be served"):
            server.serve(state.options)


@pytest.mark.parametrize("text", ["0", "65536", "-1", "99999999", "x"])
def test_what_is_no_port_is_refused_with_the_arguments(text, capsys):
    with pytest.raises(SystemExit):
        arguments(["read", "--public", "p", "--own", "o", "--out", "x", "--ports", "1", text])
    assert f"invalid port value: '{text}'" in capsys.readouterr().err
    assert arguments(["read", "--public", "p", "--own", "o", "--out", "x", "--ports", "1", "65535"]).ports == [1, 65535]


def test_the_reader_names_a_folder_that_it_cannot_use_before_it_ends_the_epoch(prepared):
    own = prepared.folder / "designer"
    taken = prepared.folder / "taken"
    taken.write_bytes(b"")
    with pytest.raises(CausewayError, match="taken: cannot be a folder"):
        reader.read(prepared.public, own, prepared.ports, taken)
    with pytest.raises(CausewayError, match="pin: cannot be read"):
        reader.read(prepared.public, prepared.folder / "nobody", prepared.ports, prepared.folder / "out")


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
