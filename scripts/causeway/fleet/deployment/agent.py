"""The agent, a client: takes one rank's normalised tables, attributes a sample locally, and sends one protected report.

The tables stand for a profiler's output; any format that Causeway reads will do. Only two sealed shares leave this
process. The user's name does not enter it: a token admits the report.
"""

import functools
import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import written_whole
from causeway.fleet.attribution.attribution import UNKNOWN, attribute, cluster
from causeway.fleet.attribution.catalogue import Catalogue, layout_of, read_verified
from causeway.fleet.attribution.encoding import RANDOM_STARTS, WindowMeasurements, encode, kernel_cells
from causeway.fleet.attribution.exports import SampledWindow, sampled_window, streams
from causeway.fleet.deployment import server as servers
from causeway.fleet.deployment import transport
from causeway.fleet.deployment.public_folder import read_signed
from causeway.fleet.protection.aggregator import REPEATED
from causeway.fleet.protection.envelope import SERIAL_BYTES, SIGNATURE_BYTES
from causeway.fleet.protection.modes import Client
from causeway.fleet.report_layout import ReportLayout

REFUSALS = {
    "early": "the epoch has not begun by its clock; run this again later",
    "late": "the epoch is over; get a token of the next one",
    "closed": "the designer has ended the epoch; get a token of the next one",
    "full": "it takes no more reports in this epoch; get a token of the next one",
    "token": "the issuer signed no such token for this epoch; get one of this deployment's epoch",
    "duplicate": "the token was used for another report, and each user has one an epoch; get a token of the next one",
}
"""What a server's refusal means, and what to do, by its reason."""


@dataclass(frozen=True, kw_only=True)
class PublicParameters:
    """The public parameters of a deployment, the same for every agent; read from its public folder and verified.

    Attributes
    ----------
    catalogue : Catalogue
    layout : ReportLayout
    client : Client
    epoch_key : bytes
        Key of the anonymous clusters, new in each epoch.
    authority : bytes
        Certificate of the authority that vouches for the servers, PEM.
    settings : mapping
        `fleet` of the configuration.
    windows : int
        Of the epoch.
    most_reports : int
        What a server takes in an epoch.
    """

    catalogue: Catalogue
    layout: ReportLayout
    client: Client
    epoch_key: bytes
    authority: bytes
    settings: Mapping
    windows: int
    most_reports: int


def read_public_parameters(public: Path, pin: str, simulation: bool = False) -> PublicParameters:
    """Read the public folder; raises `CausewayError` if not every file is the one that the pinned key signed."""
    signed = read_signed(public, pin)
    facts = signed.facts
    catalogue = read_verified(public, facts["pin"], simulation=simulation)
    layout = layout_of(catalogue, facts["fleet"])
    leader, helper = (X25519PublicKey.from_public_bytes(signed.files[f"{role}.pub"]) for role in ("leader", "helper"))
    return PublicParameters(
        catalogue=catalogue,
        layout=layout,
        client=Client(layout=layout, epoch=facts["epoch"], leader=leader, helper=helper),
        epoch_key=bytes.fromhex(facts["epoch_key"]),
        authority=signed.files["authority.pem"],
        settings=facts["fleet"],
        windows=facts["windows"],
        most_reports=facts["most_reports"],
    )


def sample(tables: Path, launches: int) -> SampledWindow:
    """Return a random window of an export's launches: a stream with probability proportional to its launches, and a
    uniform position in it.

    Raises
    ------
    CausewayError
        If the export holds no launch.
    """
    recorded = streams(tables)
    sizes = [len(stream.names) for stream in recorded]
    drawn = secrets.randbelow(sum(sizes))
    index = int(np.searchsorted(np.cumsum(sizes), drawn, side="right"))
    first = secrets.randbelow(max(sizes[index] - launches, 0) + 1)
    return sampled_window(tables, recorded, index, first=first, launches=launches)


def vector_of(window: SampledWindow, parameters: PublicParameters) -> np.ndarray:
    """Return the report's vector of a window, uint32, shape (cells,): attributed and encoded."""
    tokens = parameters.catalogue.tokens(window.names.tolist())[None]
    application = attribute(tokens, parameters.catalogue).application
    row = application
    if application[0] == UNKNOWN:
        slot = cluster(tokens[0], parameters.catalogue, parameters.epoch_key, parameters.layout.clusters)
        row = np.array([parameters.layout.applications + slot])
    timed = parameters.settings["timed_launches"]
    # tokens leave out tile sizes: kernels that differ in them alone have one token, and medians of their own
    _, kernel = np.unique(window.names[:timed], return_inverse=True)
    n = len(kernel)
    counts = encode(
        WindowMeasurements(
            row=row,
            slot=kernel_cells(
                tokens[:, :timed], application, [entry.kernels for entry in parameters.catalogue.applications]
            ),
            kernel=kernel[None],
            duration_ns=np.maximum(window.duration_ns[None, :timed], 1),
            occupancy=np.full((1, n), np.nan),
            busy=np.array([window.busy]),
            totals=window.totals[None],
        ),
        parameters.layout,
        np.array([[secrets.randbelow(1 << 53) * 2.0**-53 for _ in range(RANDOM_STARTS)]]),
    )
    return counts.vector(0, parameters.layout.cells)


def report(
    tables: Path, public: Path, token: Mapping, ports: tuple[int, int], pin: str, *, kept: Path | None = None
) -> dict:
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
    pin : str
        The designer's public key, 64 hex digits, from another place than the public folder.
    kept : Path or None
        File that holds the messages until both servers have them. What it holds of this token is sent rather than a new
        sample: if the leader has its share already, only the helper's share of the same report fits to it.

    Returns
    -------
    dict
        Bytes sent and seconds from the sample's end to both acknowledgements.

    Raises
    ------
    CausewayError
        If the catalogue, the tables or the kept messages are refused, a server is out of reach, or it refuses the
        report.
    """
    parameters = read_public_parameters(public, pin)
    messages = None if kept is None else _kept_messages(kept, token)
    begun = time.monotonic()
    if messages is None:
        window = sample(tables, parameters.settings["launches"])
        begun = time.monotonic()
        messages = protected(window, parameters, token)
        if kept is not None:
            _keep(messages, kept, token)
    sent = send(messages, parameters.authority, ports)
    if kept is not None:
        kept.unlink()
    return {"bytes": sent, "seconds": time.monotonic() - begun}


def _keep(messages: tuple[bytes, bytes], kept: Path, token: Mapping) -> None:
    facts = {"serial": token["serial"], "messages": [message.hex() for message in messages]}
    with written_whole(kept) as partial:
        transport.write_secret(partial, json.dumps(facts).encode())


def _kept_messages(kept: Path, token: Mapping) -> tuple[bytes, bytes] | None:
    """Return a token's messages of an earlier try; None if there are none."""
    if not kept.exists():
        return None
    try:
        facts = json.loads(kept.read_text(encoding="utf-8"))
        leader, helper = (bytes.fromhex(message) for message in facts["messages"])
        return (leader, helper) if facts["serial"] == token["serial"] else None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CausewayError(
            f"{kept}: holds no messages of an earlier try ({type(error).__name__}); delete it and run again"
        ) from None


def protected(window: SampledWindow, parameters: PublicParameters, token: Mapping) -> tuple[bytes, bytes]:
    """Return the two messages of a window's report."""
    signature = bytes.fromhex(token["signature"])
    return parameters.client.messages(
        vector_of(window, parameters), lambda _: signature, serial=bytes.fromhex(token["serial"])
    )


def send(messages: tuple[bytes, bytes], authority: Path | bytes, ports: tuple[int, int]) -> int:
    """Send each share to its server; returns the bytes. A server that has this very share already is passed over. Any
    other refusal raises `CausewayError` with its meaning and the server's reason; `authority` as of
    `transport.context`.
    """

    def refused(reason: bytes, role: str) -> None:
        if reason != REPEATED.encode():
            word = reason[:300].decode("utf-8", "replace")
            meaning = REFUSALS.get(word, "it is not one of this deployment; fetch the public folder again")
            raise CausewayError(f"the {role} refuses the report: {meaning} ({word})")

    for role, port, message in zip(("leader", "helper"), ports, messages, strict=True):
        refuse: Callable[[bytes], bytes | None] = functools.partial(refused, role=role)
        with transport.connected(port, authority, role) as connection:
            transport.exchange(connection, servers.REPORT, message, {servers.TAKEN: bytes, servers.REFUSED: refuse})
    return sum(map(len, messages))


def read_tokens(path: Path) -> list[dict]:
    """Read tokens as the issuer wrote them, one JSON object per line; raises `CausewayError` if there are none."""
    try:
        tokens = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
        sizes = {(len(bytes.fromhex(token["serial"])), len(bytes.fromhex(token["signature"]))) for token in tokens}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CausewayError(f"{path}: holds no tokens ({error}); ask the issuer for some") from None
    if sizes != {(SERIAL_BYTES, SIGNATURE_BYTES)}:
        raise CausewayError(f"{path}: holds no tokens (no line, or a wrong length); ask the issuer for some")
    return tokens
