"""The designer's side of a deployment: requests every release from both servers, adds the noisy shares, and writes the
estimates.
"""

import json
import ssl
from collections.abc import Callable
from pathlib import Path

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.core.logs import LOG
from causeway.fleet.deployment import server as servers
from causeway.fleet.deployment import transport
from causeway.fleet.deployment.agent import PublicParameters, read_public_parameters
from causeway.fleet.deployment.own_folder import read_pin
from causeway.fleet.protection.ledger import composed_epsilon
from causeway.fleet.release import cell_noise, designer
from causeway.fleet.release.estimates import estimate, unknown_reports
from causeway.fleet.release.release import Release, Request, assemble, check_bounds, encoded, requests
from causeway.fleet.report_layout import WORD


def request_from(connection: ssl.SSLSocket, kind: int, body: bytes = b"") -> bytes | None:
    """Send a request to a server; None if the release is below its threshold."""
    answers: dict[int, Callable[[bytes], bytes | None]] = {servers.ANSWER: bytes, servers.BELOW: lambda _: None}
    return transport.exchange(connection, kind, body, answers)


def read(public: Path, own: Path, ports: tuple[int, int], out: Path) -> Release:
    """End the epoch, fetch every release from both servers and write `release.bin` and the designer's tables under
    `out`.

    A repetition gives the same bytes: servers draw noise once.

    Raises
    ------
    CausewayError
        If `out` or the designer's folder cannot be used, a server is out of reach or refuses, the two disagree whether
        a release is above the threshold, or the release is spoilt (`check_bounds`): nothing is written then.
    """
    parameters = read_public_parameters(public, read_pin(own))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CausewayError(f"{out}: cannot be a folder ({error.strerror}); give another") from None
    authority = parameters.authority
    epoch = parameters.client.epoch
    party = transport.Party("designer", own)
    parts: dict[Request, list[np.ndarray] | None] = {}
    with (
        transport.connected(ports[0], authority, "leader", party) as leader,
        transport.connected(ports[1], authority, "helper", party) as helper,
    ):
        for connection in (leader, helper):
            request_from(connection, servers.CLOSE)
        status = [json.loads(request_from(connection, servers.STATUS) or b"{}") for connection in (leader, helper)]
        for request in requests(epoch, parameters.windows):
            body = json.dumps({"part": request.part, "window": request.window}).encode()
            answers = [request_from(connection, servers.RELEASE, body) for connection in (leader, helper)]
            shares = [np.frombuffer(share, WORD) for share in answers if share is not None]
            if len(shares) == 1:
                raise CausewayError(
                    f"the servers disagree whether {request.part} of window {request.window} may be released"
                )
            parts[request] = shares or None
    layout = parameters.layout
    # a server forgets the number of reports with the last release: the most that it takes stands in then
    reports = min(facts.get("reports", 0) for facts in status) or parameters.most_reports
    noise = cell_noise.of_servers(layout)
    made = assemble(parts, layout, spent_epsilon(parts, parameters), parameters.windows)
    check_bounds(made, layout, reports)
    head = {
        "mode": "share2",
        "noise": cell_noise.facts_of(noise),
        "epoch": epoch,
        "simulated": False,
        "delta": parameters.settings["delta"],
    }
    write_whole(out / "release.bin", encoded(made, head))
    designer.write(made, noise, layout, parameters.catalogue, out / "estimates.parquet", out / "applications.parquet")
    unknown = unknown_reports(estimate(made, noise, layout, parameters.catalogue.family_of), layout)
    if unknown is not None:
        LOG.info("reports of unknown applications: %.0f, 95 %% interval %.0f to %.0f", *unknown)
    return made


def spent_epsilon(parts: dict[Request, list | None], parameters: PublicParameters) -> float:
    """Return the epsilon that each user spent on the releases above the threshold."""
    released = {request.part for request, shares in parts.items() if shares is not None}
    return composed_epsilon(
        [parameters.layout.epsilon(part) for part in sorted(released)], parameters.settings["delta"]
    )
