"""A collector server, leader or helper: its own process, its own keys, its own ledger.

It takes halves of reports from anonymous agents, keeps them (sealed, on disk, until the epoch's release), and answers two parties that
show a certificate: the other server, with whom it joins serials and ledger heads, and the designer, who gets its noised share of what
threshold and budget allow. Halves are opened when they arrive and again when a restarted server reads its store.
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

from causeway.errors import CausewayError
from causeway.fleet import transport
from causeway.fleet.catalogue import accept
from causeway.fleet.collector import Collector, join
from causeway.fleet.envelope import RefusedError
from causeway.fleet.ledger import Ledger
from causeway.fleet.noise import SecureNoise
from causeway.fleet.release import Request, Server, count_of, part_of
from causeway.fleet.steps import layout_of
from causeway.logs import LOG

REPORT, SERIALS, RELEASE, STATUS, CLOSE = range(1, 6)
TAKEN, REFUSED, ANSWER, BELOW, FAILED = range(16, 21)
_ENTRY = struct.Struct("<IB")
_RECORD = struct.Struct("<16sB")


@dataclass(frozen=True)
class Deployment:
    """What a server is told.

    Attributes
    ----------
    role : str
        `leader` or `helper`.
    folder : Path
        Its own: `seal.key`, its store and its ledger.
    public : Path
        What all parties know: catalogue, keys, `deployment.json`, certificates' authority.
    anchor : Path
        Remembers the ledger's head; lies with the other server, or on another disk.
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


class State:
    """What a running server holds; one lock guards it."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.lock, self.open = deployment, threading.RLock(), True
        public, folder = deployment.public, deployment.folder
        facts = json.loads((public / "deployment.json").read_text(encoding="utf-8"))
        self.settings, self.epoch, self.windows = facts["fleet"], facts["epoch"], facts["windows"]
        designer = Ed25519PublicKey.from_public_bytes((public / "designer.pub").read_bytes())
        catalogue = accept((public / "catalogue.json").read_bytes(), (public / "catalogue.sig").read_bytes(), designer, facts["pin"])
        self.layout = layout_of(catalogue, self.settings)
        self.most = facts["most_reports"]
        self.layout.check_capacity(self.most)
        issuer = Ed25519PublicKey.from_public_bytes((public / "issuer.pub").read_bytes())
        key = X25519PrivateKey.from_private_bytes((folder / "seal.key").read_bytes())
        self.collector = Collector(deployment.role, self.epoch, self.layout, key, issuer)
        ledger = Ledger(
            folder / "ledger", [deployment.anchor], Fraction(str(self.settings["budget"])), self.settings["delta"], simulated=False
        )
        ledger.entries()
        threshold = self.settings["release_threshold"]
        self.server = Server(deployment.role, ledger, SecureNoise(), self.layout, threshold, facts["name"])
        self.joined: dict[bytes, int] | None = None
        self._store = folder / f"epoch_{self.epoch}.store"
        self._window_s, self._begun = facts["window_s"], facts["begun"]
        self._restore()
        self._handle = open(self._store, "ab")  # noqa: SIM115 - open as long as the server

    def _restore(self) -> None:
        """Read what a server that died had stored; a message at the end that its death cut is dropped."""
        if not self._store.exists():
            return
        content, at = self._store.read_bytes(), 0
        while at + _ENTRY.size <= len(content):
            size, window = _ENTRY.unpack_from(content, at)
            message = content[at + _ENTRY.size : at + _ENTRY.size + size]
            if len(message) < size:
                break
            try:
                self.collector.receive(message, window)
            except RefusedError as error:
                LOG.warning("%s: a stored report is damaged (%s) and left out", self.deployment.role, error.reason)
            at += _ENTRY.size + size
        os.truncate(self._store, at)
        LOG.info("%s: %d reports restored", self.deployment.role, len(self.collector.opened))

    def window(self) -> int:
        """Return the window of now."""
        return int(np.clip((time.time() - self._begun) // self._window_s, 0, self.windows - 1))

    def take(self, message: bytes) -> None:
        """Take one half and store it before it is acknowledged; raises `RefusedError`."""
        with self.lock:
            if not self.open:
                raise RefusedError("closed")
            if len(self.collector.opened) >= self.most:
                raise RefusedError("full")
            window = self.window()
            self.collector.receive(message, window)
            self._handle.write(_ENTRY.pack(len(message), window) + message)
            self._handle.flush()

    def close(self) -> None:
        """End the epoch: no report is taken any more."""
        with self.lock:
            self.open = False
            os.fsync(self._handle.fileno())

    def serials(self) -> bytes:
        """Return the serials with their windows, in order; the epoch ends with it, so that both servers join the same set."""
        with self.lock:
            self.close()
            return b"".join(_RECORD.pack(serial, window) for serial, window in sorted(self.collector.windows.items()))

    def join(self) -> dict[bytes, int]:
        """Return the reports that both servers have, asking the other one once."""
        with self.lock:
            self.close()
            if self.joined is None:
                role, other = self.deployment.role, self.deployment.other
                me = transport.Party(role, self.deployment.folder)
                with transport.connected(self.deployment.peer_port, self.deployment.public, other, me) as connection:
                    content = transport.exchange(connection, SERIALS, b"", {ANSWER: bytes})
                theirs = dict(_RECORD.iter_unpack(content))
                mine = self.collector.windows
                leader, helper = (mine, theirs) if role == "leader" else (theirs, mine)
                self.joined = join(leader, helper)
            return self.joined

    def release(self, request: Request) -> bytes | None:
        """Return this server's noised share for a request, or None below the threshold."""
        joined = self.join()
        with self.lock:
            reports = np.bincount(list(joined.values()), minlength=self.windows).astype(np.int64)
            part = part_of(self.collector.sums(joined, self.windows), request, self.layout)
            noised = self.server.noised(part, count_of(reports, request), request)
            return None if noised is None else noised.tobytes()

    def status(self) -> bytes:
        """Return counts that say how the epoch goes; nothing of a single report."""
        with self.lock:
            facts = {"reports": len(self.collector.opened), "refused": dict(self.collector.refused), "open": self.open}
            return json.dumps(facts, sort_keys=True).encode()


class _Handler(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(transport.TIMEOUT_S)
        state: State = self.server.state
        try:
            self.request.do_handshake()
            peer = transport.peer_of(self.request)
            while True:
                kind, body = transport.receive(self.request, longest=1 << 21)
                transport.send(self.request, *_answer(state, peer, kind, body))
        except (transport.ConnectionLostError, ssl.SSLError, OSError):
            return


def _answer(state: State, peer: str | None, kind: int, body: bytes) -> tuple[int, bytes]:
    """Return the reply to a frame: who asks decides what they may ask."""
    try:
        if kind == REPORT:
            state.take(body)
            return TAKEN, b""
        if kind == SERIALS and peer == state.deployment.other:
            return ANSWER, state.serials()
        if kind == STATUS and peer == "designer":
            return ANSWER, state.status()
        if kind == CLOSE and peer == "designer":
            state.close()
            return ANSWER, b""
        if kind == RELEASE and peer == "designer":
            facts = json.loads(body)
            noised = state.release(Request(state.epoch, str(facts["part"]), int(facts["window"])))
            return (BELOW, b"") if noised is None else (ANSWER, noised)
        return FAILED, b"this party may not ask that"
    except RefusedError as error:
        if kind == REPORT and error.reason in ("closed", "full"):
            state.collector.refused[error.reason] += 1
        return REFUSED, error.reason.encode()
    except CausewayError as error:
        return FAILED, str(error).encode()
    except (ValueError, KeyError, TypeError):
        return FAILED, b"malformed request"


class _Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, state: State) -> None:
        self.state = state
        super().__init__(("127.0.0.1", state.deployment.port), _Handler)
        me = transport.Party(state.deployment.role, state.deployment.folder)
        secure = transport.context(state.deployment.public, me, serving=True)
        # the handshake runs in the connection's own thread: a silent client holds up nobody
        self.socket = secure.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


def serve(deployment: Deployment) -> None:
    """Run a server until it is terminated."""
    state = State(deployment)
    with _Listener(state) as listener:
        LOG.info("%s: listening on port %d", deployment.role, listener.server_address[1])
        print("ready", flush=True)
        listener.serve_forever(poll_interval=0.1)
