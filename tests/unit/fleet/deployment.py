"""A deployment of two server processes on the loopback address, for tests."""

import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

from causeway.fleet.attribution.catalogue import TrainingRun
from causeway.fleet.attribution.exports import streams
from causeway.fleet.deployment import deploy

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
        command = [
            sys.executable,
            "-m",
            "causeway.fleet",
            "server",
            "--role",
            role,
            "--folder",
            self.folder / role,
            "--public",
            self.public,
        ]
        command += [
            "--anchor",
            self.folder / f"anchor_of_{role}.json",
            "--ports",
            own,
            other,
            "--log",
            self.folder / f"{role}.log",
        ]
        environment = dict(os.environ, OMP_NUM_THREADS="1")
        process = subprocess.Popen(
            [str(part) for part in command], cwd=SCRIPTS, env=environment, stdout=subprocess.PIPE, text=True
        )
        self.processes[role] = process
        assert process.stdout.readline() == "ready\n", (self.folder / f"{role}.log").read_text()

    def kill(self, role):
        process = self.processes.pop(role)
        process.kill()
        process.wait(30)
        process.stdout.close()

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
