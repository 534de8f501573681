"""A deployment of two server processes on the loopback address, for tests.

The servers are forks of one process that has imported them: to import takes most of the time of a start. As a program this
module is that process: of each line that it reads, `{"arguments", "output"}`, it forks `python -m causeway.fleet` with these
arguments and writes the number of the fork's process. One test starts a server as its host does.
"""

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from causeway.fleet import __main__ as programs
from causeway.fleet.attribution.catalogue import TrainingRun
from causeway.fleet.attribution.exports import streams
from causeway.fleet.deployment import agent, deploy, reader, server, transport
from causeway.fleet.report_layout import WORD

_FORKER = []
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
START_S = 60
"""Seconds in which a server answers, however busy the machine is."""
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


class ForkedServer:
    """A server that answers, as a process of its own.

    Parameters
    ----------
    arguments : list
        Of `python -m causeway.fleet`.
    output : Path
        New file for what it prints.

    Raises
    ------
    RuntimeError
        If it ends before it answers, or does not answer in time.
    """

    def __init__(self, arguments, output):
        if not _FORKER or _FORKER[0].poll() is not None:
            environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(SCRIPTS))
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            _FORKER[:] = [subprocess.Popen([sys.executable, __file__], env=environment, **pipes)]
        output.touch()
        request = {"arguments": [str(part) for part in arguments], "output": str(output)}
        _FORKER[0].stdin.write(json.dumps(request) + "\n")
        _FORKER[0].stdin.flush()
        self.pid = int(_FORKER[0].stdout.readline())
        limit = time.monotonic() + START_S
        while "ready\n" not in output.read_text(encoding="utf-8"):
            if not self.is_alive() or time.monotonic() > limit:
                raise RuntimeError(output.read_text(encoding="utf-8"))
            time.sleep(0.01)

    def is_alive(self):
        """Return whether the process is there."""
        return Path(f"/proc/{self.pid}").exists()

    def kill(self):
        """Kill it at once; return when it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        while self.is_alive():
            time.sleep(0.005)


@atexit.register
def _end():
    for forker in _FORKER:
        forker.kill()
        forker.wait()
        forker.stdin.close()
        forker.stdout.close()


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
        arguments = ["server", "--role", role, "--folder", self.folder / role, "--public", self.public]
        arguments += ["--anchor", self.folder / f"anchor_of_{role}.json", "--ports", own, other]
        arguments += ["--log", self.folder / f"{role}.log"]
        self.starts += 1
        self.processes[role] = ForkedServer(arguments, self.folder / f"start_{self.starts}.log")

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


def main():
    """Fork a server for each line that is read."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # what has ended leaves nothing behind
    while line := sys.stdin.readline():
        child = os.fork()
        if child:
            print(child, flush=True)
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        request = json.loads(line)
        nothing = os.open(os.devnull, os.O_RDONLY)
        output = os.open(request["output"], os.O_WRONLY | os.O_APPEND)
        for opened, number in ((nothing, 0), (output, 1)):
            os.dup2(opened, number)
        programs.main(request["arguments"])
        return


if __name__ == "__main__":
    main()
