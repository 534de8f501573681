"""The agent: takes one rank's normalised tables, decides locally what runs there, and sends one protected report.

The tables stand for what a profiler hands over; any format that Causeway reads will do. What leaves this process are two sealed halves. The
user's name does not enter it: a token admits the report.
"""

import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from causeway.errors import CausewayError
from causeway.fleet import server as servers
from causeway.fleet import transport
from causeway.fleet.attribution import UNKNOWN, attribute, cluster
from causeway.fleet.catalogue import Catalogue, accept
from causeway.fleet.encoding import N_STARTS, Seen, encode, slots_of
from causeway.fleet.exports import Window, streams, window
from causeway.fleet.layout import Layout
from causeway.fleet.modes import Client
from causeway.fleet.sampling import WINDOW_S
from causeway.fleet.steps import layout_of
from causeway.tables import read_json


@dataclass(frozen=True)
class Knowledge:
    """What every agent knows of a deployment; read from its public folder and checked."""

    catalogue: Catalogue
    layout: Layout
    client: Client
    epoch_key: bytes
    settings: Mapping


def know(public: Path, simulation: bool = False) -> Knowledge:
    """Read the public folder; raises `CausewayError` if the catalogue is not the signed and pinned one."""
    facts = read_json(public / "deployment.json")
    designer = Ed25519PublicKey.from_public_bytes((public / "designer.pub").read_bytes())
    text, signature = (public / "catalogue.json").read_bytes(), (public / "catalogue.sig").read_bytes()
    found = accept(text, signature, designer, facts["pin"], simulation)
    layout = layout_of(found, facts["fleet"])
    leader, helper = (X25519PublicKey.from_public_bytes((public / f"{role}.pub").read_bytes()) for role in ("leader", "helper"))
    return Knowledge(found, layout, Client(layout, facts["epoch"], leader, helper), bytes.fromhex(facts["epoch_key"]), facts["fleet"])


def sample(tables: Path, launches: int) -> Window:
    """Return a random window of an export's launches: a stream by its number of launches, a place in it at random."""
    found = streams(tables)
    sizes = [len(stream.names) for stream in found]
    drawn = secrets.randbelow(sum(sizes))
    which = int(np.searchsorted(np.cumsum(sizes), drawn, side="right"))
    first = secrets.randbelow(max(sizes[which] - launches, 0) + 1)
    return window(tables, found, which, first, launches, WINDOW_S)


def vector_of(seen: Window, known: Knowledge) -> np.ndarray:
    """Return the report's vector of a window: attributed, counted, bounded."""
    tokens = known.catalogue.tokens(seen.names)[None]
    application = attribute(tokens, known.catalogue).application
    row = application
    if application[0] == UNKNOWN:
        slot = cluster(tokens[0], known.catalogue, known.epoch_key, known.layout.clusters)
        row = np.array([known.layout.applications + slot])
    timed = known.settings["timed_launches"]
    _, kernel = np.unique(tokens[0, :timed], return_inverse=True)
    n = len(kernel)
    counts = encode(
        Seen(
            row=row,
            slot=slots_of(tokens[:, :timed], application, [entry.kernels for entry in known.catalogue.applications]),
            kernel=kernel[None],
            duration_ns=np.maximum(seen.duration_ns[None, :timed], 1),
            occupancy=np.full((1, n), np.nan),
            busy=np.array([seen.busy]),
            totals=seen.totals[None],
        ),
        known.layout,
        np.array([[secrets.randbelow(1 << 53) * 2.0**-53 for _ in range(N_STARTS)]]),
    )
    return counts.vector(0, known.layout.cells)


def report(tables: Path, public: Path, token: Mapping, ports: tuple[int, int]) -> dict:
    """Sample, attribute, encode, protect and send one report.

    Parameters
    ----------
    tables : Path
        One rank's normalised tables.
    public : Path
        The deployment's public folder.
    token : mapping
        `serial` and `signature` from the issuer, hexadecimal.
    ports : tuple of int
        Of leader and helper.

    Returns
    -------
    dict
        Bytes sent and seconds from the sample's end to both acknowledgements.
    """
    known = know(public)
    seen = sample(tables, known.settings["launches"])
    begun = time.monotonic()
    messages = protected(seen, known, token)
    sent = send(messages, public, ports)
    return {"bytes": sent, "seconds": time.monotonic() - begun}


def protected(seen: Window, known: Knowledge, token: Mapping) -> tuple[bytes, bytes]:
    """Return the two messages of a window's report."""
    signature = bytes.fromhex(token["signature"])
    return known.client.messages(vector_of(seen, known), lambda _: signature, serial=bytes.fromhex(token["serial"]))


def send(messages: tuple[bytes, bytes], public: Path, ports: tuple[int, int]) -> int:
    """Send each half to its server; returns the bytes. A refusal raises `CausewayError` with the server's one word."""
    for role, port, message in zip(("leader", "helper"), ports, messages, strict=True):
        with transport.connected(port, public, role) as connection:
            transport.exchange(connection, servers.REPORT, message, {servers.TAKEN: bytes})
    return sum(map(len, messages))


def read_tokens(path: Path) -> list[dict]:
    """Read tokens as the issuer wrote them: one JSON object per line."""
    try:
        return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise CausewayError(f"{path}: holds no tokens ({error}); ask the issuer for some") from None
