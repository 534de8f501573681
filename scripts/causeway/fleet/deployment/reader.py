"""The designer's side of a deployment: asks both servers for every release, adds the noised shares, and reads what they say."""

import json
from pathlib import Path

import numpy as np

from causeway.errors import CausewayError
from causeway.fleet import designer, transport
from causeway.fleet import server as servers
from causeway.fleet.agent import know
from causeway.fleet.layout import WORD
from causeway.fleet.ledger import composed
from causeway.fleet.release import Release, Request, assemble, encoded, requests
from causeway.tables import read_json


def ask(connection, kind: int, body: bytes = b"") -> bytes | None:
    """Ask a server; None if what was asked for is below its threshold."""
    return transport.exchange(connection, kind, body, {servers.ANSWER: bytes, servers.BELOW: lambda _: None})


def read(public: Path, own: Path, ports: tuple[int, int], out: Path) -> Release:
    """End the epoch, fetch every release from both servers and write `release.bin` and the designer's tables under `out`.

    Asking again gives the same bytes: servers draw noise once.
    """
    known, facts = know(public), read_json(public / "deployment.json")
    party, parts = transport.Party("designer", own), {}
    with transport.connected(ports[0], public, "leader", party) as leader, transport.connected(ports[1], public, "helper", party) as helper:
        for connection in (leader, helper):
            ask(connection, servers.CLOSE)
        for request in requests(facts["epoch"], facts["windows"]):
            body = json.dumps({"part": request.part, "window": request.window}).encode()
            found = [ask(connection, servers.RELEASE, body) for connection in (leader, helper)]
            if (found[0] is None) != (found[1] is None):
                raise CausewayError(f"the servers disagree whether {request.part} of window {request.window} may be released")
            parts[request] = None if found[0] is None else [np.frombuffer(share, WORD) for share in found]
    scales = {section.name: section.scale for section in known.layout.sections}
    made = assemble(parts, known.layout, spent(parts, known), facts["windows"])
    out.mkdir(parents=True, exist_ok=True)
    head = {"mode": "share2", "scales": scales, "epoch": facts["epoch"], "simulated": False, "delta": known.settings["delta"]}
    (out / "release.bin").write_bytes(encoded(made, head))
    designer.write(made, scales, known.layout, known.catalogue, out / "estimates.parquet", out / "applications.parquet")
    return made


def spent(parts: dict[Request, list | None], known) -> float:
    """Return the epsilon that users spent on what was released."""
    released = {request.part for request, shares in parts.items() if shares is not None}
    return composed([known.layout.epsilon(part) for part in sorted(released)], known.settings["delta"])
