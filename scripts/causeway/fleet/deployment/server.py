"""An aggregator server, leader or helper: its own process, its own keys, its own ledger.

It takes shares of reports from anonymous agents, keeps them (sealed, on disk, until the epoch's release), and answers
two parties that show a certificate: the other server, with which it joins serials, and the designer, who gets its noisy
share of every release within threshold and budget. Shares are opened when they arrive and again when a restarted server
reads its store.
"""

import json
import os
import socketserver
import ssl
import struct
import threading
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from causeway.core.errors import CausewayError
from causeway.core.logs import LOG
from causeway.fleet.attribution.catalogue import layout_of, read_verified
from causeway.fleet.deployment import transport
from causeway.fleet.protection.aggregator import Aggregator, join
from causeway.fleet.protection.envelope import ReportRefusedError
from causeway.fleet.protection.ledger import Ledger
from causeway.fleet.protection.noise import SecureNoise
from causeway.fleet.release.release import Request, Server, released_cells, reports_behind

REPORT, SERIALS, RELEASE, STATUS, CLOSE = range(1, 6)
"""Kinds of requests."""
TAKEN, REFUSED, ANSWER, BELOW, FAILED = range(16, 21)
"""Kinds of replies; `BELOW`: the release is below the threshold."""
_ENTRY = struct.Struct("<IB")
_RECORD = struct.Struct("<16sB")


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """The options of a server process.

    Attributes
    ----------
    role : str
        `leader` or `helper`.
    folder : Path
        Its own: `seal.key`, its store and its ledger.
    public : Path
        Common to all parties: catalogue, keys, `deployment.json`, certificates' authority.
    anchor : Path
        Holds the head of the ledger's chain; lies with the other server, or on another disk.
    port, peer_port : int
        Its own and the other server's, on the loopback address.
    """

    role: str
    folder: Path
    public: Path
    anchor: Path
    port: int
    peer_port: int

    @property
    def other(self) -> str:
        """The other server's role."""
        return "helper" if self.role == "leader" else "leader"


class ServerState:
    """The state of a running server, guarded by one lock.

    Raises
    ------
    CausewayError
        If the catalogue is not the signed and pinned one, sums of `most_reports` reports could overflow, or the ledger
        is damaged.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.lock = threading.RLock()
        self.open = True
        public = options.public
        folder = options.folder
        facts = json.loads((public / "deployment.json").read_text(encoding="utf-8"))
        self.settings = facts["fleet"]
        self.epoch = facts["epoch"]
        self.windows = facts["windows"]
        self.layout = layout_of(read_verified(public, facts["pin"]), self.settings)
        self.most = facts["most_reports"]
        self.layout.check_capacity(self.most)
        issuer = Ed25519PublicKey.from_public_bytes((public / "issuer.pub").read_bytes())
        key = X25519PrivateKey.from_private_bytes((folder / "seal.key").read_bytes())
        self.aggregator = Aggregator(options.role, self.epoch, self.layout, key, issuer)
        ledger = Ledger(
            folder / "ledger",
            [options.anchor],
            Fraction(str(self.settings["budget"])),
            self.settings["delta"],
            simulated=False,
        )
        ledger.entries()
        threshold = self.settings["release_threshold"]
        self.server = Server(options.role, ledger, SecureNoise(), self.layout, threshold, facts["name"])
        self.joined: dict[bytes, int] | None = None
        self._store = folder / f"epoch_{self.epoch}.store"
        self._window_s = facts["window_s"]
        self._begun = facts["begun"]
        self._restore()
        self._handle = open(self._store, "ab")  # noqa: SIM115 - open as long as the server

    def _restore(self) -> None:
        """Read the store of an earlier process; an incomplete message at its end is dropped."""
        if not self._store.exists():
            return
        content = self._store.read_bytes()
        at = 0
        while at + _ENTRY.size <= len(content):
            size, window = _ENTRY.unpack_from(content, at)
            message = content[at + _ENTRY.size : at + _ENTRY.size + size]
            if len(message) < size:
                break
            try:
                self.aggregator.receive(message, window)
            except ReportRefusedError as error:
                LOG.warning("%s: a stored report is damaged (%s) and left out", self.options.role, error.reason)
            at += _ENTRY.size + size
        os.truncate(self._store, at)
        LOG.info("%s: %d reports restored", self.options.role, len(self.aggregator.input_shares))

    def window(self) -> int:
        """Return the current window."""
        return int(np.clip((time.time() - self._begun) // self._window_s, 0, self.windows - 1))

    def take(self, message: bytes) -> None:
        """Take one share and store it before it is acknowledged; raises `ReportRefusedError`."""
        with self.lock:
            if not self.open:
                raise ReportRefusedError("closed")
            if len(self.aggregator.input_shares) >= self.most:
                raise ReportRefusedError("full")
            window = self.window()
            self.aggregator.receive(message, window)
            self._handle.write(_ENTRY.pack(len(message), window) + message)
            self._handle.flush()

    def close(self) -> None:
        """End the epoch: further reports are refused."""
        with self.lock:
            self.open = False
            os.fsync(self._handle.fileno())

    def serials(self) -> bytes:
        """Return the serials with their windows, in order; the epoch ends with it, so that both servers join the
        same set.
        """
        with self.lock:
            self.close()
            return b"".join(_RECORD.pack(serial, window) for serial, window in sorted(self.aggregator.windows.items()))

    def join(self) -> dict[bytes, int]:
        """Return the reports that both servers have; the other server is asked once."""
        with self.lock:
            self.close()
            if self.joined is None:
                role = self.options.role
                other = self.options.other
                me = transport.Party(role, self.options.folder)
                with transport.connected(self.options.peer_port, self.options.public, other, me) as connection:
                    content = transport.exchange(connection, SERIALS, b"", {ANSWER: bytes})
                theirs = dict(_RECORD.iter_unpack(content))
                mine = self.aggregator.windows
                leader, helper = (mine, theirs) if role == "leader" else (theirs, mine)
                self.joined = join(leader, helper)
            return self.joined

    def release(self, request: Request) -> bytes | None:
        """Return this server's noisy share of a release, or None below the threshold."""
        joined = self.join()
        with self.lock:
            reports = np.bincount(list(joined.values()), minlength=self.windows).astype(np.int64)
            part = released_cells(self.aggregator.sums(joined, self.windows), request, self.layout)
            share = self.server.noisy_share(part, reports_behind(reports, request), request)
            return None if share is None else share.tobytes()

    def status(self) -> bytes:
        """Return the epoch's counts of reports and refusals, as JSON; nothing of a single report."""
        with self.lock:
            facts = {
                "reports": len(self.aggregator.input_shares),
                "refused": dict(self.aggregator.refused),
                "open": self.open,
            }
            return json.dumps(facts, sort_keys=True).encode()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(transport.TIMEOUT_S)
        state: ServerState = self.server.state
        try:
            self.request.do_handshake()
            peer = transport.peer_of(self.request)
            while True:
                kind, body = transport.receive(self.request, longest=1 << 21)
                transport.send(self.request, *_answer(state, peer, kind, body))
        except (transport.ConnectionLostError, ssl.SSLError, OSError):
            return


def _answer(state: ServerState, peer: str | None, kind: int, body: bytes) -> tuple[int, bytes]:
    """Return the reply to a frame; the peer's certificate decides which requests it may make."""
    try:
        if kind == REPORT:
            state.take(body)
            return TAKEN, b""
        if kind == SERIALS and peer == state.options.other:
            return ANSWER, state.serials()
        if kind == STATUS and peer == "designer":
            return ANSWER, state.status()
        if kind == CLOSE and peer == "designer":
            state.close()
            return ANSWER, b""
        if kind == RELEASE and peer == "designer":
            facts = json.loads(body)
            share = state.release(Request(state.epoch, str(facts["part"]), int(facts["window"])))
            return (BELOW, b"") if share is None else (ANSWER, share)
        return FAILED, b"this party may not ask that"
    except ReportRefusedError as error:
        if kind == REPORT and error.reason in ("closed", "full"):
            state.aggregator.refused[error.reason] += 1
        return REFUSED, error.reason.encode()
    except CausewayError as error:
        return FAILED, str(error).encode()
    except (ValueError, KeyError, TypeError):
        return FAILED, b"malformed request"


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, state: ServerState) -> None:
        self.state = state
        super().__init__(("127.0.0.1", state.options.port), _Handler)
        me = transport.Party(state.options.role, state.options.folder)
        secure = transport.context(state.options.public, me, serving=True)
        # the handshake runs in the connection's own thread: a silent client holds up nobody
        self.socket = secure.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


def serve(options: ServerOptions) -> None:
    """Run a server until it is terminated."""
    state = ServerState(options)
    with _Listener(state) as listener:
        LOG.info("%s: listening on port %d", options.role, listener.server_address[1])
        print("ready", flush=True)
        listener.serve_forever(poll_interval=0.1)
