"""A deployment of two server processes on the loopback address, for tests."""

import contextlib
import json
import socket
from pathlib import Path

import numpy as np
from forked_servers import ForkedServer

from causeway.fleet.attribution.catalogue import TrainingRun
from causeway.fleet.attribution.exports import streams
from causeway.fleet.deployment import agent, deploy, reader, server, transport
from causeway.fleet.report_layout import WORD

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
SETTINGS = {
    "k": 4, "threshold": 0.6, "margin": 0.01, "kernel_cells": 8, "clusters": 4, "launches": 64, "timed_launches": 64,
    "clips": {"gpu_ms": 60_000, "launches": 4_000_000, "mib": 100_000},
    "budget": 1.0, "delta": 1e-9, "release_threshold": 5,
    "epsilon": {
        "applications": 0.24, "kernels": 0.25, "durations": 0.35, "occupancy": 0.03, "variability": 0.03,
        "efficiency": 0.03, "resources": 0.07,
    },
}  # fmt: skip
EPOCH = 12
RUNS = [
    TrainingRun(
        application=name,
        family=name,
        version="",
        names=[f"{name}_{number % 7}" for number in range(64)],
        durations=np.full(64, 1e5),
    )
    for name in ("first", "second")
]
"""Of two applications, to learn a small catalogue from."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def run_of(name, tables):
    """Return the runs that the streams of an export's tables give, under one application's name."""
    return [
        TrainingRun(
            application=name,
            family=name,
            version="",
            names=stream.names.tolist(),
            durations=stream.duration_ns.astype(float),
        )
        for stream in streams(tables)
        if len(stream.names) > 31
    ]


class Deployment:
    """Both servers' folders and processes."""

    def __init__(self, folder, runs, **changes):
        self.folder = folder
        self.processes = {}
        self.starts = 0
        self.ports = (free_port(), free_port())
        options = {"epoch": EPOCH, "name": "trial", "window_s": 3600.0, "most_reports": 500} | changes
        deploy.prepare(folder, runs, SETTINGS, **options)

    @property
    def public(self):
        return self.folder / "public"

    @property
    def pin(self):
        return (self.folder / "designer" / "pin").read_text().strip()

    def start(self, role):
        own, other = self.ports if role == "leader" else self.ports[::-1]
        arguments = [
            "server",
            "--role",
            role,
            "--folder",
            self.folder / role,
            "--public",
            self.public,
        ]
        arguments += [
            "--anchor",
            self.folder / f"anchor_of_{role}.json",
            "--ports",
            own,
            other,
            "--log",
            self.folder / f"{role}.log",
        ]
        self.starts += 1
        self.processes[role] = ForkedServer(arguments, self.folder / f"start_{self.starts}.log", SCRIPTS)

    def kill(self, role):
        self.processes.pop(role).kill()

    def token(self, user):
        return deploy.issue(self.folder / "issuer", user, EPOCH, 1)[0]

    @contextlib.contextmanager
    def running(self):
        try:
            for role in ("leader", "helper"):
                self.start(role)
            yield self
        finally:
            for role in list(self.processes):
                self.kill(role)


def reports_of(deployed, count, first=0):
    """Return the messages of reports of the first application, each of another user."""
    known = agent.read_public_parameters(deployed.public, deployed.pin)
    vector = np.zeros(known.layout.cells, WORD)
    vector[0] = 1
    made = []
    for number in range(first, first + count):
        token = deployed.token(f"user{number}")
        signature = bytes.fromhex(token["signature"])
        made.append(known.client.messages(vector, lambda _, s=signature: s, serial=bytes.fromhex(token["serial"])))
    return made


def send_reports(deployed, count, first=0):
    """Send reports of the first application; return the messages."""
    sent = reports_of(deployed, count, first)
    for messages in sent:
        agent.send(messages, deployed.public, deployed.ports)
    return sent


def state_of(deployed, role):
    """Return a server's state in this process, as a start of the server makes it."""
    own, other = deployed.ports if role == "leader" else deployed.ports[::-1]
    return server.ServerState(
        server.ServerOptions(
            role=role,
            folder=deployed.folder / role,
            public=deployed.public,
            anchor=deployed.folder / f"anchor_of_{role}.json",
            port=own,
            peer_port=other,
        )
    )


def asked(deployed, role, part, window):
    party = transport.Party("designer", deployed.folder / "designer")
    port = deployed.ports[role == "helper"]
    with transport.connected(port, deployed.public, role, party) as connection:
        return reader.request_from(connection, server.RELEASE, json.dumps({"part": part, "window": window}).encode())
