"""Agents on real exports, two server processes, the designer's reader: the same code as the simulation, run for
real.
"""

import json
import socket
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from deployment import EPOCH, SCRIPTS, SETTINGS, Deployment, run_of

from causeway.core.errors import CausewayError
from causeway.core.tables import read_table
from causeway.fleet.attribution.encoding import Counts
from causeway.fleet.attribution.exports import sampled_window, streams
from causeway.fleet.deployment import agent, reader, server, transport
from causeway.fleet.protection.noise import noise_half_width
from causeway.fleet.release.estimates import sections_of
from causeway.readers.normalise import normalise

EXPORTS = {
    "training_before": "nsys_sqlite/nsys-ai/mfu_2gpu_before.sqlite",
    "training_after": "nsys_sqlite/nsys-ai/mfu_2gpu_after.sqlite",
    "gaussian_once": "nsys_sqlite/rodinia-gaussian/report3.sqlite",
    "gaussian_again": "nsys_sqlite/rodinia-gaussian/report5.sqlite",
    "cloverleaf": "nsys_sqlite/pipit/perlmutter-cloverleaf-cuda.sqlite",
}
LEARNT = {"training": "training_before", "gaussian": "gaussian_once"}
REPORTED = {"training_after": 14, "gaussian_again": 9, "cloverleaf": 3}
SECRET_WORDS = [b"Fan2", b"Fan1", b"training", b"gaussian", b"cloverleaf", b"somebody"]


@pytest.fixture(scope="module")
def tables(data, tmp_path_factory):
    """Return folders of normalised tables of real exports, by name."""
    folder = tmp_path_factory.mktemp("tables")
    for name, path in EXPORTS.items():
        normalise(data / path, folder / name, export="0", source=name)
    return {name: folder / name for name in EXPORTS}


@pytest.fixture
def deployed(tables, tmp_path):
    """Return a running deployment whose catalogue learnt two of the programs, each from another run."""
    runs = [run for name, export in LEARNT.items() for run in run_of(name, tables[export])]
    with Deployment(tmp_path / "d", runs).running() as found:
        yield found


def status(deployed, role):
    party = transport.Party("designer", deployed.folder / "designer")
    with transport.connected(deployed.ports[role == "helper"], deployed.public, role, party) as connection:
        return json.loads(reader.request_from(connection, server.STATUS))


def windows_of(tables, seed=0):
    """Return windows of the runs that the catalogue did not learn: names of the exports, and what was seen."""
    rng = np.random.default_rng(seed)
    found = []
    for name, count in REPORTED.items():
        found_streams = streams(tables[name])
        for _ in range(count):
            first = int(rng.integers(0, len(found_streams[0].names) - SETTINGS["launches"]))
            found.append(
                (name, sampled_window(tables[name], found_streams, 0, first=first, launches=SETTINGS["launches"]))
            )
    return found


def read(deployed, name="out"):
    out = deployed.folder / name
    return reader.read(deployed.public, deployed.folder / "designer", deployed.ports, out), out


def test_from_real_exports_to_the_designers_tables(deployed, tables, monkeypatch):
    """What leaves an agent is kept here and searched; the release is the exact sum and bounded noise; asking again
    changes nothing.
    """
    known = agent.read_public_parameters(deployed.public, deployed.pin)
    sent = []
    vectors = []
    monkeypatch.setattr(type(known.layout), "check", lambda layout, vector: vectors.append(vector.copy()))
    for number, (_, seen) in enumerate(windows_of(tables)):
        messages = agent.protected(seen, known, deployed.token(f"somebody{number}"))
        agent.send(messages, deployed.public, deployed.ports)
        sent += messages
    n = sum(REPORTED.values())
    assert [status(deployed, role)["reports"] for role in ("leader", "helper")] == [n, n]
    made, out = read(deployed)
    exact = np.sum(vectors, axis=0, dtype=np.int64)
    assert int(exact[: known.layout.by_name["applications"].rows].sum()) == n == len(vectors)
    for section in known.layout.sections:
        got = (
            made.traffic.sum(0)
            if section.name == "applications"
            else sections_of(made.detail, known.layout)[section.name].ravel()
        )
        away = np.abs(got - exact[section.cells])
        assert away.max() <= noise_half_width(section.noise_scale, 1 - 1e-9)
        assert away.max() > 0
    names = [entry.name for entry in known.catalogue.applications]
    counted = dict(zip(names, exact[: len(names)].tolist(), strict=True))
    assert counted == {"gaussian": REPORTED["gaussian_again"], "training": REPORTED["training_after"]}
    again, _ = read(deployed, "again")
    assert (out / "release.bin").read_bytes() == (deployed.folder / "again" / "release.bin").read_bytes()
    assert read_table(out / "applications.parquet", "fleet_applications").column("application").to_pylist() == names
    assert made.epsilon == again.epsilon <= 1.0
    kept = [path for role in ("leader", "helper") for path in (deployed.folder / role).rglob("*") if path.is_file()]
    assert len(kept) > 6
    for content in [
        *sent,
        *(path.read_bytes() for path in kept),
        *(path.read_bytes() for path in deployed.folder.glob("*.log")),
    ]:
        assert not [word for word in SECRET_WORDS if word in content]
    kernels = {name.encode() for export in EXPORTS for name in streams(tables[export])[0].names}
    assert not [name for name in kernels for content in sent if name in content]
    assert all(len(leader) + len(helper) <= 25_000 for leader, helper in zip(sent[::2], sent[1::2], strict=True))


def test_a_server_killed_mid_epoch_comes_back_with_what_it_had(deployed, tables):
    """Group 5; a report whose second half met a dead server counts for nobody."""
    known = agent.read_public_parameters(deployed.public, deployed.pin)
    found = windows_of(tables)
    for number in range(6):
        agent.send(
            agent.protected(found[number][1], known, deployed.token(f"u{number}")), deployed.public, deployed.ports
        )
    deployed.kill("helper")
    with pytest.raises(CausewayError, match="helper"):
        agent.send(agent.protected(found[6][1], known, deployed.token("u6")), deployed.public, deployed.ports)
    store = deployed.folder / "helper" / f"epoch_{EPOCH}.store"
    with open(store, "ab") as handle:  # cut in the middle of a message
        handle.write(store.read_bytes()[:300])
    deployed.start("helper")
    assert [status(deployed, role)["reports"] for role in ("leader", "helper")] == [7, 6]
    size = int.from_bytes(store.read_bytes()[:4], "little")
    with (
        transport.connected(deployed.ports[1], deployed.public, "helper") as connection,
        pytest.raises(CausewayError, match="duplicate"),
    ):
        reader.request_from(connection, server.REPORT, store.read_bytes()[13 : 13 + size])
    made, _ = read(deployed)
    assert made.released.sum() == 1
    assert (
        abs(int(made.traffic.sum()) - 6)
        <= noise_half_width(known.layout.by_name["applications"].noise_scale, 1 - 1e-6) * made.traffic.shape[1]
    )
    deployed.kill("leader")
    deployed.start("leader")
    again, _ = read(deployed, "again")
    assert (again.traffic == made.traffic).all()
    with pytest.raises(CausewayError, match="closed"):
        agent.send(agent.protected(found[7][1], known, deployed.token("late")), deployed.public, deployed.ports)


def test_below_the_threshold_the_servers_say_nothing(deployed, tables):
    known = agent.read_public_parameters(deployed.public, deployed.pin)
    found = windows_of(tables)
    for number in range(SETTINGS["release_threshold"] - 1):
        agent.send(
            agent.protected(found[number][1], known, deployed.token(f"u{number}")), deployed.public, deployed.ports
        )
    made, _ = read(deployed)
    assert made.detail is None
    assert not made.released.any()
    assert made.epsilon == 0
    assert not list((deployed.folder / "leader" / "ledger").glob("*.release"))


def test_who_may_ask_what(deployed):
    """Agents are anonymous and may report only; strangers' certificates open nothing; a broken frame ends one
    connection alone.
    """
    ports = deployed.ports
    public = deployed.public
    with transport.connected(ports[0], public, "leader") as connection:
        for kind in (server.SERIALS, server.RELEASE, server.STATUS, server.CLOSE, 99):
            with pytest.raises(CausewayError, match="may not"):
                reader.request_from(connection, kind, b'{"part": "detail", "window": -1}')
    stranger = deployed.folder / "stranger"
    stranger.mkdir()
    party = transport.Party("designer", stranger)
    transport.make_certificates(stranger, [party])
    with (
        pytest.raises(CausewayError),
        transport.connected(ports[0], public, "leader", transport.Party("designer", stranger)) as connection,
    ):
        reader.request_from(connection, server.STATUS)
    with pytest.raises(CausewayError, match="no connection"), transport.connected(ports[0], stranger, "leader"):
        pass
    with pytest.raises(CausewayError, match="no connection"), transport.connected(ports[0], public, "helper"):
        pass
    with transport.connected(ports[0], public, "leader") as connection:
        connection.sendall(b"\x01\xff\xff\xff\xff")
        with pytest.raises(transport.ConnectionLostError):
            transport.receive(connection)
    with socket.create_connection(("127.0.0.1", ports[0]), 10) as plain:
        plain.sendall(b"GET / HTTP/1.0\r\n\r\n")
    assert status(deployed, "leader")["open"]


def test_old_tls_is_not_spoken(deployed):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.load_verify_locations(deployed.public / "authority.pem")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection(("127.0.0.1", deployed.ports[0]), 10) as plain,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        old.wrap_socket(plain, server_hostname="leader")


@pytest.mark.slow
def test_the_programs_from_the_command_line_and_their_latency(deployed, tables):
    """One report by the programs themselves; then 10 at up to four at a time: nine of ten within eight seconds."""

    def program(*words):
        command = [sys.executable, "-m", "causeway.fleet", *map(str, words)]
        return subprocess.run(command, cwd=SCRIPTS, capture_output=True, text=True, check=False, timeout=120)

    token = deployed.folder / "token.json"
    issue = ["tokens", "--issuer", deployed.folder / "issuer", "--user", "me", "--epoch", EPOCH, "--out", token]
    assert program(*issue).returncode == 0
    refused = program(*issue)
    assert refused.returncode == 1
    assert "tokens" in refused.stderr
    places = ["--public", deployed.public, "--ports", *deployed.ports]
    sent = program("agent", "--pin", deployed.pin, "--tables", tables["training_after"], "--token", token, *places)
    assert sent.returncode == 0, sent.stderr
    assert json.loads(sent.stdout)["bytes"] < 25_000
    assert (
        "duplicate"
        in program(
            "agent", "--pin", deployed.pin, "--tables", tables["training_after"], "--token", token, *places
        ).stderr
    )

    given = [deployed.token(f"load{number}") for number in range(10)]

    def load(token):
        return agent.report(tables["gaussian_again"], deployed.public, token, deployed.ports, deployed.pin)["seconds"]

    with ThreadPoolExecutor(max_workers=4) as pool:
        seconds = list(pool.map(load, given))
    assert np.quantile(seconds, 0.9) <= 8.0
    out = deployed.folder / "read"
    done = program("read", "--own", deployed.folder / "designer", "--out", out, *places)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in out.iterdir()} == {"release.bin", "estimates.parquet", "applications.parquet"}
    assert status(deployed, "leader")["refused"] == {"duplicate": 1}


def test_a_tampered_public_folder_is_refused(deployed):
    facts = json.loads((deployed.public / "deployment.json").read_text())
    (deployed.public / "deployment.json").write_text(json.dumps(facts | {"pin": "0" * 64}))
    with pytest.raises(CausewayError, match="pinned"):
        agent.read_public_parameters(deployed.public, deployed.pin)


def test_an_export_without_launches_gives_a_clear_message(tmp_path):
    with pytest.raises(CausewayError, match="no launches"):
        agent.sample(Path(tmp_path), 64)


def test_counts_are_what_the_reader_of_a_vector_expects():
    counts = Counts(np.array([0, 0, 2]), np.array([1, 4, 0]), np.array([5, 6, 7]))
    assert counts.vector(0, 5).tolist() == [0, 5, 0, 0, 6]
    assert counts.vector(1, 5).tolist() == [0] * 5
    assert counts.vector(2, 5).tolist() == [7, 0, 0, 0, 0]
