"""An aggregator server, leader or helper: its own process, its own keys, its own ledger.

It takes shares of reports from anonymous agents, keeps them (sealed, on disk, until the epoch's release), and answers
two parties that show a certificate: the other server, with which it joins serials, and the designer, who gets its noisy
share of every release within threshold and budget. Shares are opened when they arrive and again when a restarted server
reads its store.
"""

import contextlib
import json
import os
import resource
import socket
import socketserver
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from causeway.core.errors import CausewayError
from causeway.core.logs import LOG
from causeway.fleet.attribution.catalogue import layout_of, read_verified
from causeway.fleet.deployment import transport
from causeway.fleet.deployment.own_folder import held, read_pin, read_seal_key
from causeway.fleet.deployment.public_folder import read_signed
from causeway.fleet.deployment.store import ReportStore, digest_of, packed_windows, unpacked_windows
from causeway.fleet.protection.aggregator import REPEATED, Aggregator, join
from causeway.fleet.protection.envelope import ReportRefusedError
from causeway.fleet.protection.ledger import Ledger
from causeway.fleet.protection.noise import SecureNoise
from causeway.fleet.release.release import Request, Server, released_cells, reports_behind, requests

REPORT, SERIALS, RELEASE, STATUS, CLOSE = range(1, 6)
"""Kinds of requests."""
TAKEN, REFUSED, ANSWER, BELOW, FAILED = range(16, 21)
"""Kinds of replies; `BELOW`: the release is below the threshold."""
HANDSHAKE_S = 5.0
"""Seconds in which a connection must have finished its TLS handshake: a hundred times what one takes here."""
MOST_CONNECTIONS = 64
"""Connections at a time; beyond, the oldest that has shown no certificate and asked nothing is closed. An agent's lasts
well under a second, so that this serves more than a hundred reports a second.
"""


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
        If the public folder is not the one that the pinned key signed, the epoch began under another one, sums of
        `most_reports` reports could overflow, or the ledger or the store is damaged.
    """

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.lock = threading.RLock()
        self._joining = threading.Lock()
        public = options.public
        folder = options.folder
        signed = read_signed(public, read_pin(folder))
        facts = signed.facts
        self.settings = facts["fleet"]
        self.epoch = facts["epoch"]
        self.windows = facts["windows"]
        self.layout = layout_of(read_verified(public, facts["pin"]), self.settings)
        self.most = facts["most_reports"]
        self.layout.check_capacity(self.most)
        self.authority = signed.files["authority.pem"]
        issuer = Ed25519PublicKey.from_public_bytes(signed.files["issuer.pub"])
        self.aggregator = Aggregator(options.role, self.epoch, self.layout, read_seal_key(folder), issuer)
        ledger = Ledger(
            folder / "ledger",
            [options.anchor],
            Fraction(str(self.settings["budget"])),
            self.settings["delta"],
            simulated=False,
            windows=self.windows,
        )
        released = [entry for entry in ledger.entries() if entry["epoch"] == self.epoch]
        threshold = self.settings["release_threshold"]
        self.server = Server(options.role, ledger, SecureNoise(), self.layout, threshold, facts["name"])
        self.store = ReportStore(folder, self.epoch, self.windows)
        self.store.bind(signed.digest, bool(released))
        self.joined = self.store.joined(str(released[0].get("joined")) if released else None)
        self.open = not self.store.closed
        self._window_s = facts["window_s"]
        self._begun = facts["begun"]
        self._restore()

    def _restore(self) -> None:
        """Read the store of an earlier process."""
        for message, window in self.store.messages():
            try:
                self.aggregator.receive(message, window)
            except ReportRefusedError as error:
                if error.reason != REPEATED:
                    raise CausewayError(
                        f"{self.store.path}: a stored report is refused now ({error.reason}); restore the seal.key and"
                        " the store with which the epoch began"
                    ) from None
        if self.aggregator.input_shares:
            LOG.info("%s: %d reports restored", self.options.role, len(self.aggregator.input_shares))

    def window(self) -> int:
        """Return the current window; raises `ReportRefusedError` before the epoch's first and after its last one."""
        window = int((time.time() - self._begun) // self._window_s)
        if window < 0:
            raise ReportRefusedError("early")
        if window >= self.windows:
            raise ReportRefusedError("late")
        return window

    def take(self, message: bytes) -> None:
        """Take one share and store it before it is acknowledged; raises `ReportRefusedError`."""
        with self.lock:
            if not self.open:
                raise ReportRefusedError("closed")
            window = self.window()
            serial = self.aggregator.receive(message, window)  # first, so that a full server still knows a repetition
            if len(self.aggregator.input_shares) > self.most:
                self.aggregator.forget(serial)
                raise ReportRefusedError("full")
            try:
                self.store.append(message, window)
            except OSError:
                self.aggregator.forget(serial)  # not acknowledged, so not counted either
                raise

    def close(self) -> None:
        """End the epoch for good, also for a later process: further reports are refused."""
        with self.lock:
            self.open = False
            self.store.close()

    def serials(self) -> bytes:
        """Return the serials with their windows, in order; the epoch ends with it, so that both servers join the
        same set. Raises `CausewayError` once they are deleted.
        """
        with self.lock:
            if self.store.finished:
                raise CausewayError(f"epoch {self.epoch} is finished: its joined reports were deleted")
            self.close()
            self.store.tell()
            return packed_windows(self.aggregator.windows if self.joined is None else self.joined)

    def join(self) -> dict[bytes, int]:
        """Return the reports that both servers have. The other server is asked once in the life of the epoch: what
        was joined is on the disk before anything of it is released, so that no later answer moves a report to another
        window.
        """
        self.close()
        with self._joining:  # not the state's lock: the other server may ask us meanwhile
            if self.joined is None:
                role = self.options.role
                other = self.options.other
                me = transport.Party(role, self.options.folder)
                with transport.connected(self.options.peer_port, self.authority, other, me) as connection:
                    content = transport.exchange(connection, SERIALS, b"", {ANSWER: bytes})
                theirs = unpacked_windows(content, self.windows)
                with self.lock:
                    ours = self.aggregator.windows
                    leader, helper = (ours, theirs) if role == "leader" else (theirs, ours)
                    joined = join(leader, helper)
                    self.store.fix_joined(joined)
                    self.joined = joined
            return self.joined

    def release(self, request: Request) -> bytes | None:
        """Return this server's noisy share of a release, or None below the threshold; after the last one, the shares
        of single reports are deleted, and which reports were joined as soon as the other server has asked for it.

        Raises
        ------
        CausewayError
            If the request is none of the epoch's, the ledger refuses, or shares of joined reports are lost.
        """
        wanted = requests(self.epoch, self.windows)
        if request not in wanted:
            raise CausewayError(f"{request.part} of window {request.window} is not a release of this epoch")
        if self.store.finished:
            return self.server.released(request)
        joined = self.join()
        with self.lock:
            reports = np.bincount(list(joined.values()), minlength=self.windows).astype(np.int64)
            share = self.server.released(request)
            if share is None and reports_behind(reports, request) >= self.server.threshold:
                if lost := set(joined) - self.aggregator.serials:
                    raise CausewayError(f"the shares of {len(lost)} joined reports are lost; nothing is released")
                part = released_cells(self.aggregator.sums(joined, self.windows), request, self.layout)
                count = reports_behind(reports, request)
                noisy = self.server.noisy_share(part, count, request, digest_of(packed_windows(joined)))
                share = None if noisy is None else noisy.tobytes()
            if all(self._done(reports, other) for other in wanted):
                self.store.remove()
                self.aggregator.input_shares.clear()
                if self.store.told:
                    self.store.finish()
            return share

    def _done(self, reports: np.ndarray, request: Request) -> bool:
        few = reports_behind(reports, request) < self.server.threshold
        return few or self.server.released(request) is not None

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
    server: "_Listener"

    def handle(self) -> None:
        state = self.server.state
        try:
            with self.server.deadline(self.request, HANDSHAKE_S):
                self.request.do_handshake()
            peer = transport.peer_of(self.request)
            while True:
                with self.server.deadline(self.request, transport.TIMEOUT_S, is_peer=peer is not None):
                    kind, body = transport.receive(self.request, longest=1 << 21)
                transport.send(self.request, *_answer(state, peer, kind, body))
        except (transport.ConnectionLostError, ssl.SSLError, OSError, ValueError):
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
        if kind == REPORT and error.reason in ("closed", "full", "early", "late"):
            state.aggregator.refused[error.reason] += 1
        return REFUSED, error.reason.encode()
    except CausewayError as error:
        own = state.options
        LOG.error("%s: %s", own.role, error)
        # where a server keeps its files is no business of who asks
        told = str(error).replace(str(own.anchor), own.anchor.name).replace(f"{own.folder}{os.sep}", "")
        return FAILED, told.encode()
    except OSError as error:  # of our own disk
        own = state.options
        LOG.error("%s: its folder %s or its anchor cannot be written (%s)", own.role, own.folder, error.strerror)
        return FAILED, f"the {own.role} cannot write to its disk, so that this does not count; try later".encode()
    except Exception as error:
        LOG.warning("%s: a malformed request (%s)", state.options.role, type(error).__name__)
        return FAILED, b"malformed request"


class _Listener(socketserver.ThreadingTCPServer):
    """Takes connections, each in a thread; a connection that keeps its thread waiting too long is closed, however it
    trickles its bytes.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 256

    def __init__(self, state: ServerState) -> None:
        self.state = state
        self._waiting: dict[socket.socket, tuple[float, bool]] = {}
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        # half of the open files that this process may have: the other half is for the ledger, the store and libraries
        self._most = min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        me = transport.Party(state.options.role, state.options.folder)
        secure = transport.context(state.authority, me, serving=True)
        port = state.options.port
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except OSError as error:
            raise CausewayError(f"port {port} cannot be served ({error.strerror}); give another, or free it") from None
        # the handshake runs in the connection's own thread: a silent client holds up nobody
        self.socket = secure.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @contextlib.contextmanager
    def deadline(self, connection: socket.socket, seconds: float, is_peer: bool = False) -> Iterator[None]:
        """Close a connection whose block lasts longer than `seconds`; a peer's never makes room for others."""
        connection.settimeout(seconds)
        with self._lock:
            self._waiting[connection] = (time.monotonic() + seconds, is_peer)
        try:
            yield
        finally:
            with self._lock:
                self._waiting.pop(connection, None)

    def service_actions(self) -> None:
        """Close what waited too long; called several times a second."""
        now = time.monotonic()
        with self._lock:
            late = [connection for connection, (until, _) in self._waiting.items() if until < now]
        for connection in late:
            _shut(connection)

    def process_request(self, request: Any, client_address: object) -> None:
        """Start a connection's thread; beyond the most connections, the one that waited longest makes room."""
        with self._lock:
            waiting = [connection for connection, (_, is_peer) in self._waiting.items() if not is_peer]
            oldest = waiting[0] if len(self._connections) >= self._most and waiting else None
            self._connections.add(request)
        if oldest is not None:
            _shut(oldest)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        with self._lock:
            self._connections.discard(request)
            self._waiting.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: object) -> None:
        """Say that a connection failed, without the address: agents are anonymous."""
        LOG.warning("%s: a connection ended with %s", self.state.options.role, type(sys.exc_info()[1]).__name__)


def _shut(connection: socket.socket) -> None:
    # the thread that waits for it closes it; plain, since OpenSSL's own would wait for the other side
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def serve(options: ServerOptions) -> None:
    """Run a server until it is terminated; all that it writes is readable by its own account alone."""
    os.umask(0o077)
    with held(options.folder), _Listener(ServerState(options)) as listener:
        LOG.info("%s: listening on port %d", options.role, listener.server_address[1])
        print("ready", flush=True)
        listener.serve_forever(poll_interval=0.1)
