"""What a designer, a lying server, racing users, silent clients and a changed folder try against real servers."""

import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from deployment import EPOCH, RUNS, SCRIPTS, SETTINGS, Deployment, asked, free_port, send_reports

from causeway.core.errors import CausewayError
from causeway.core.files import whole_files
from causeway.fleet.deployment import agent, deploy, public_folder, reader, server, store, transport
from causeway.fleet.protection import secret_sharing
from causeway.fleet.protection.envelope import ReportRefusedError, hpke_info
from causeway.fleet.protection.ledger import Ledger, LedgerError
from causeway.fleet.release.release import Release, check_bounds
from causeway.fleet.report_layout import WORD


@pytest.fixture
def prepared(tmp_path):
    return Deployment(tmp_path / "d", RUNS)


@pytest.fixture
def deployed(prepared):
    with prepared.running():
        yield prepared


def test_a_designer_gets_each_report_once_whatever_windows_it_names(deployed):
    """Negative and foreign windows alias others: each would be the same reports with fresh noise."""
    send_reports(deployed, 8)
    first = {role: asked(deployed, role, "traffic", 0) for role in ("leader", "helper")}
    assert all(first.values())
    for role in ("leader", "helper"):
        for part, window in [("traffic", -1), ("traffic", -24), ("traffic", 24), ("detail", 0), ("detail", -24)]:
            with pytest.raises(CausewayError, match="not a release of this epoch"):
                asked(deployed, role, part, window)
        with pytest.raises(CausewayError, match="malformed"):
            asked(deployed, role, "traffic", float("inf"))
        assert asked(deployed, role, "traffic", 0) == first[role]
        assert asked(deployed, role, "detail", -1)
    lines = (deployed.folder / "leader" / "ledger" / "ledger.jsonl").read_text().splitlines()
    assert [json.loads(line)["window"] for line in lines] == [0, -1]


def test_the_whole_epoch_is_added_to_its_windows(tmp_path):
    ledger = Ledger(tmp_path / "l", [], Fraction(10), 0.0, simulated=True)

    def release(window, epsilon):
        ledger.release(
            f"r{window}", epoch=1, part="p", window=window, epsilon=epsilon, simulated=True, draw=lambda: b"x"
        )

    for window, epsilon in ((0, Fraction(1)), (5, Fraction(2)), (-1, Fraction(3))):
        release(window, epsilon)
    assert ledger.spent(1) == 5.0  # max(1, 2) + 3
    for window in (-2, -24, 24, 1000):
        with pytest.raises(LedgerError, match="none of the epoch's"):
            release(window, Fraction(1, 100))


def test_a_lying_leader_and_restarts_move_no_report_to_another_window(deployed, tmp_path):
    """The leader answers SERIALS with another window each time; the helper is restarted between the requests."""
    send_reports(deployed, 8)
    asked(deployed, "helper", "traffic", 0)
    joined = deployed.folder / "helper" / f"epoch_{EPOCH}.joined"
    fixed = joined.read_bytes()
    deployed.kill("leader")
    answers = []

    def lie(window):
        me = transport.Party("leader", deployed.folder / "leader")
        with socket.socket() as plain:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            plain.bind(("127.0.0.1", deployed.ports[0]))
            plain.listen()
            plain.settimeout(3)
            try:
                connection, _ = plain.accept()
            except TimeoutError:
                return
            with transport.context(deployed.public, me, serving=True).wrap_socket(connection, server_side=True) as one:
                transport.receive(one)
                answers.append(window)
                records = store.unpacked_windows(fixed, 24)
                transport.send(one, server.ANSWER, store.packed_windows(dict.fromkeys(records, window)))

    for window in (3,):
        deployed.kill("helper")
        deployed.start("helper")
        liar = threading.Thread(target=lie, args=(window,))
        liar.start()
        assert asked(deployed, "helper", "traffic", window) is None  # nobody is in that window
        liar.join()
    assert answers == []
    assert joined.read_bytes() == fixed
    lines = (deployed.folder / "helper" / "ledger" / "ledger.jsonl").read_text().splitlines()
    assert len(lines) == 1


@pytest.mark.parametrize("content", [b"x" * 16, b"x" * 16 + b"\x18", (b"x" * 16 + b"\x01") * 2])
def test_serials_that_are_cut_doubled_or_of_no_window_are_refused(content):
    with pytest.raises(CausewayError, match="nothing is joined"):
        store.unpacked_windows(content, 24)
    good = {b"a" * 16: 0, b"b" * 16: 23}
    assert store.unpacked_windows(store.packed_windows(good), 24) == good


def _one_token(folder, user, go, results):
    go.wait()
    try:
        results.put(len(deploy.issue(folder, user, 1, 1)))
    except CausewayError:
        results.put(0)


def test_of_racing_requests_for_one_user_one_gets_a_token(prepared):
    context = multiprocessing.get_context("fork")
    for number in range(3):
        folder = prepared.folder / "issuer"
        go = context.Event()
        results = context.Queue()
        racers = [context.Process(target=_one_token, args=(folder, f"user{number}", go, results)) for _ in range(6)]
        for racer in racers:
            racer.start()
        go.set()
        assert sum(results.get(timeout=30) for _ in racers) == 1
        for racer in racers:
            racer.join(30)


def test_an_agent_trusts_what_the_pinned_key_signed_and_nothing_else(prepared, tmp_path):
    public = prepared.public
    pin = prepared.pin
    agent.read_public_parameters(public, pin)
    with pytest.raises(CausewayError, match="no public key"):
        agent.read_public_parameters(public, "zz")
    other = Deployment(tmp_path / "other", RUNS)
    with pytest.raises(CausewayError, match="did not sign"):
        agent.read_public_parameters(other.public, pin)
    for name in sorted(file.name for file in public.iterdir() if not file.name.startswith("deployment")):
        copy = tmp_path / f"copy_of_{name}"
        shutil.copytree(public, copy)
        (copy / name).write_bytes((other.public / name).read_bytes())
        with pytest.raises(CausewayError, match=f"{name} changed"):
            agent.read_public_parameters(copy, pin)
    swapped = tmp_path / "swapped"
    shutil.copytree(public, swapped)
    (swapped / "leader.pub").rename(swapped / "third")
    (swapped / "helper.pub").rename(swapped / "leader.pub")
    (swapped / "third").rename(swapped / "helper.pub")
    with pytest.raises(CausewayError, match=r"helper\.pub, leader\.pub changed"):
        agent.read_public_parameters(swapped, pin)
    facts = json.loads((public / "deployment.json").read_text())
    for change in ({"most_reports": 10**6}, {"fleet": SETTINGS | {"budget": 100.0, "release_threshold": 1}}):
        (swapped / "deployment.json").write_text(json.dumps(facts | change))
        with pytest.raises(CausewayError, match="did not sign"):
            agent.read_public_parameters(swapped, pin)
    own = Ed25519PrivateKey.generate()
    public_folder.publish(swapped, facts, own)  # signed anew by somebody else
    with pytest.raises(CausewayError, match="did not sign"):
        agent.read_public_parameters(swapped, pin)


def test_after_the_release_nothing_of_a_single_report_stays(deployed):
    send_reports(deployed, 8)
    stores = [deployed.folder / role / f"epoch_{EPOCH}.store" for role in ("leader", "helper")]
    assert [path.stat().st_mode & 0o777 for path in stores] == [0o600, 0o600]
    made = reader.read(deployed.public, deployed.folder / "designer", deployed.ports, deployed.folder / "out")
    assert made.released.sum() == 1
    assert not any(path.exists() for path in stores)
    for role in ("leader", "helper"):
        left = {path.suffix for path in (deployed.folder / role).glob(f"epoch_{EPOCH}.*")}
        assert left == {".closed", ".deployment", ".finished"}
    for role in ("leader", "helper"):
        deployed.kill(role)
    for role in ("leader", "helper"):
        deployed.start(role)
    again = reader.read(deployed.public, deployed.folder / "designer", deployed.ports, deployed.folder / "again")
    assert (again.traffic == made.traffic).all()
    assert (again.detail == made.detail).all()


def test_the_reader_says_how_many_reports_are_of_unknown_applications(deployed, monkeypatch, caplog):
    """An epoch of one hour: twelve reports, none of them of an unknown application. Four clusters have noise of scale
    1 / .24 of each server.
    """
    caplog.set_level("INFO", logger="causeway")
    asked_of = deployed.public, deployed.folder / "designer", deployed.ports, deployed.folder / "out"
    send_reports(deployed, 12)
    reader.read(*asked_of)
    assert "unknown applications" not in caplog.text  # 23 hours were not released
    known = agent.read_public_parameters(deployed.public, deployed.pin)
    monkeypatch.setattr(reader, "read_public_parameters", lambda *_: replace(known, windows=1))
    reader.read(*asked_of)
    ((value, low, high),) = re.findall(r"unknown applications: (\d+), 95 % interval (\d+) to (\d+)", caplog.text)
    half = 1.959964 * 2 / 0.24 * 4**0.5
    assert int(high) <= int(value) + half + 1
    assert value == "0" or int(high) == pytest.approx(int(value) + half, abs=1)
    assert int(low) <= int(value) < 4 * half


def test_a_release_that_one_report_spoilt_is_refused(deployed, tmp_path):
    """Its cells are random words, which the client refuses to send and no server can see inside a share."""
    send_reports(deployed, 8)
    known = agent.read_public_parameters(deployed.public, deployed.pin)
    unchecked = replace(known.client, layout=SimpleNamespace(digest=known.layout.digest, check=lambda vector: None))
    token = deployed.token("liar")
    words = np.random.default_rng(4).integers(0, 1 << 32, known.layout.cells, dtype=WORD)
    messages = unchecked.messages(
        words, lambda _: bytes.fromhex(token["signature"]), serial=bytes.fromhex(token["serial"])
    )
    agent.send(messages, deployed.public, deployed.ports)
    for _ in range(2):  # servers forget how many reports there were
        with pytest.raises(CausewayError, match=r"spoilt: cells lie beyond .* of applications, \d+ of kernels"):
            reader.read(deployed.public, deployed.folder / "designer", deployed.ports, tmp_path / "out")
        assert list((tmp_path / "out").iterdir()) == []


def test_a_release_at_its_bounds_is_not_refused():
    """The largest counts that all reports can give, with noise 200 scales away; one more, or less, is refused."""
    layout = agent.layout_of(SimpleNamespace(applications=[1, 2], slots=8), SETTINGS)
    reports = 8
    low, high = ([layout.farthest(section, reports)[end] for section in layout.sections] for end in (0, 1))
    counts = [
        np.full((section.rows, section.columns), most) for section, most in zip(layout.sections, high, strict=True)
    ]
    made = Release(
        traffic=counts[0].reshape(1, -1).copy(), released=np.array([True]),
        detail=np.concatenate([count.ravel() for count in counts[1:]]), epsilon=1.0,
    )  # fmt: skip
    check_bounds(made, layout, reports)
    with pytest.raises(CausewayError, match=f"what {reports - 1} reports can give"):
        check_bounds(made, layout, reports - 1)
    made.traffic[0, 0] = low[0]
    check_bounds(made, layout, reports)
    made.traffic[0, 0] -= 1
    with pytest.raises(CausewayError, match=r"\(1 of applications\)"):
        check_bounds(made, layout, reports)


def test_nothing_of_a_single_report_stays_after_a_restart_between_two_releases(deployed):
    """Serials and hours of the joined reports: a restarted server is not asked for them a second time."""
    send_reports(deployed, 8)
    for role in ("leader", "helper"):
        asked(deployed, role, "traffic", 0)
    for role in ("leader", "helper"):
        assert (deployed.folder / role / f"epoch_{EPOCH}.joined").exists()
        deployed.kill(role)
    for role in ("leader", "helper"):
        deployed.start(role)
    reader.read(deployed.public, deployed.folder / "designer", deployed.ports, deployed.folder / "out")
    for role in ("leader", "helper"):
        left = {path.suffix for path in (deployed.folder / role).glob(f"epoch_{EPOCH}.*")}
        assert left == {".closed", ".deployment", ".finished"}


def test_a_closed_epoch_stays_closed_and_a_changed_release_is_not_handed_out(deployed):
    send_reports(deployed, 6)
    asked(deployed, "leader", "traffic", 0)
    deployed.kill("leader")
    (stored,) = (deployed.folder / "leader" / "ledger").glob("*.release")
    content = bytearray(stored.read_bytes())
    content[5] ^= 1
    stored.write_bytes(content)
    deployed.start("leader")
    with pytest.raises(CausewayError, match="closed"):
        send_reports(deployed, 1, first=100)
    with pytest.raises(CausewayError, match="gone or changed") as refused:
        asked(deployed, "leader", "traffic", 0)
    assert str(deployed.folder) not in str(refused.value)
    assert str(deployed.folder) in (deployed.folder / "leader.log").read_text()


def test_a_second_process_in_a_servers_folder_does_not_start(deployed, monkeypatch):
    """On another port it would join a set of its own; its start would cut the store in use at an unfinished record."""
    monkeypatch.setattr(os, "umask", lambda mode: mode)
    monkeypatch.setattr(server._Listener, "serve_forever", lambda *_, **__: None)
    send_reports(deployed, 1)
    folder = deployed.folder / "helper"
    with open(folder / f"epoch_{EPOCH}.store", "ab") as handle:
        handle.write(b"unfinished")
    before = (folder / f"epoch_{EPOCH}.store").read_bytes()
    options = server.ServerOptions(
        role="helper",
        folder=folder,
        public=deployed.public,
        anchor=deployed.folder / "anchor_of_helper.json",
        port=free_port(),
        peer_port=deployed.ports[0],
    )
    with pytest.raises(CausewayError, match="helper: another server process runs in this folder"):
        server.serve(options)
    assert (folder / f"epoch_{EPOCH}.store").read_bytes() == before
    deployed.kill("helper")
    deployed.start("helper")
    assert (folder / f"epoch_{EPOCH}.store").read_bytes() == before.removesuffix(b"unfinished")


def test_both_servers_asked_at_once_answer(deployed):
    send_reports(deployed, 6)
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda role: asked(deployed, role, "traffic", 0), ("leader", "helper")))
    assert all(found)
    assert time.monotonic() - begun < 20


def test_silent_and_trickling_clients_hold_up_nobody(prepared):
    """80 connections that say nothing against a server of 64 open files, and one that sends a byte now and then."""
    with prepared.running():
        prepared.kill("leader")
        program = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); "
        program += "from causeway.fleet.__main__ import main; main(sys.argv[1:])"
        words = [
            "server", "--role", "leader", "--folder", prepared.folder / "leader", "--public", prepared.public,
            "--anchor", prepared.folder / "anchor_of_leader.json", "--ports", *prepared.ports,
        ]  # fmt: skip
        process = subprocess.Popen(
            [sys.executable, "-c", program, *map(str, words)], cwd=SCRIPTS, stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout.readline() == "ready\n"
            silent = [socket.create_connection(("127.0.0.1", prepared.ports[0]), 10) for _ in range(80)]
            begun = time.monotonic()
            send_reports(prepared, 1)
            assert time.monotonic() - begun < 8
            slow = silent[-1]
            deadline = time.monotonic() + 2 * server.HANDSHAKE_S + 5
            closed = False
            while not closed and time.monotonic() < deadline:
                try:
                    slow.sendall(b"\x16")
                    slow.settimeout(0.5)
                    closed = slow.recv(100) == b""
                except TimeoutError:
                    continue
                except OSError:
                    closed = True
            assert closed, "a connection that trickles its handshake is open for ever"
            for one in silent:
                one.close()
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(30)
            process.stdout.close()


def test_a_half_cannot_be_moved_to_another_token_epoch_layout_role_or_mode():
    """The seal binds a share to its place: removing the context on both sides would pass every other test."""
    key = X25519PrivateKey.generate()
    place = {"role": "leader", "mode": "share2", "epoch": 1, "serial": b"s" * 16, "layout": b"l" * 16}
    sealed = secret_sharing.seal(b"share", key.public_key(), hpke_info(**place))
    assert secret_sharing.open_sealed(sealed, key, hpke_info(**place)) == b"share"
    for change in (
        {"role": "helper"}, {"mode": "ahe"}, {"epoch": 2}, {"serial": b"t" * 16}, {"layout": b"m" * 16},
    ):  # fmt: skip
        with pytest.raises(ReportRefusedError, match="seal"):
            secret_sharing.open_sealed(sealed, key, hpke_info(**(place | change)))


def test_keystream_keys_are_32_bytes_of_the_systems_entropy(monkeypatch):
    """Equal keys would come up among 2,000 of two random bytes with probability above 1 - 1e-13."""
    vector = np.zeros(4, WORD)
    keys = [secret_sharing.split(vector)[0] for _ in range(2000)]
    assert {len(key) for key in keys} == {32}
    assert len(set(keys)) == len(keys)
    bits = np.unpackbits(np.frombuffer(b"".join(keys), np.uint8)).reshape(2000, 256).mean(0)
    # every bit varies: 6 standard deviations of a fair one, 256 of them
    assert np.abs(bits - 0.5).max() < 6 * 0.5 / np.sqrt(2000)


def test_a_release_is_on_the_disk_before_it_is_handed_out(tmp_path, monkeypatch):
    synced = []
    plain = whole_files.on_disk
    monkeypatch.setattr(whole_files, "on_disk", lambda path: (synced.append(os.path.basename(path)), plain(path)))
    ledger = Ledger(tmp_path / "l", [tmp_path / "anchor.json"], Fraction(1), 0.0, simulated=True)
    ledger.release("r", epoch=1, part="p", window=0, epsilon=Fraction(1, 2), simulated=True, draw=lambda: b"noisy")
    files = [name for name in synced if name.endswith(".partial")]
    assert files == ["r.release.partial", "ledger.jsonl.partial", "anchor.json.partial"]


def test_a_store_that_is_full_counts_no_report_and_stays_readable(tmp_path, monkeypatch):
    kept = store.ReportStore(tmp_path, 1, 24)
    kept.append(b"first", 3)
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        kept.append(b"second", 4)
    monkeypatch.undo()
    kept.append(b"third", 5)
    assert list(store.ReportStore(tmp_path, 1, 24).messages()) == [(b"first", 3), (b"third", 5)]


def test_the_log_says_what_kind_of_error_and_nothing_of_the_message(caplog):
    caplog.set_level("INFO", logger="causeway")
    state = SimpleNamespace(options=SimpleNamespace(role="leader"), epoch=EPOCH, release=None)
    body = json.dumps({"part": "applications", "window": "user-4711"}).encode()
    assert server._answer(state, "designer", server.RELEASE, body) == (server.FAILED, b"malformed request")
    try:
        raise ValueError("user-4711 at 10.0.0.7")
    except ValueError:
        server._Listener.handle_error(SimpleNamespace(state=state), None, ("10.0.0.7", 4711))
    assert "malformed request (ValueError)" in caplog.text
    assert "a connection ended with ValueError" in caplog.text
    assert "4711" not in caplog.text
    assert "10.0.0.7" not in caplog.text


def test_a_secret_is_its_owners_also_where_a_file_of_anybody_stood(tmp_path):
    path = tmp_path / "sign.key"
    path.write_bytes(b"older")
    path.chmod(0o644)
    transport.write_secret(path, b"new")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes() == b"new"
