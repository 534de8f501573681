"""Messages between processes: frames over TLS sockets. The TLS is Python's `ssl` (OpenSSL); certificates come from the
`cryptography` package.

A frame is a kind of one byte, the length of its body in four, and the body. Nothing in a frame is evaluated; a frame
that is too long closes the connection.
"""

import contextlib
import datetime
import ipaddress
import socket
import ssl
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from causeway.core.errors import CausewayError

T = TypeVar("T")
_HEAD = struct.Struct("<BI")
LONGEST_FRAME = 1 << 26
TIMEOUT_S = 30.0
VALID_DAYS = 30


class ConnectionLostError(CausewayError):
    """The other side closed or broke the connection."""


def send(connection: socket.socket, kind: int, body: bytes = b"") -> None:
    """Send one frame; raises `ConnectionLostError` if it cannot be sent."""
    try:
        connection.sendall(_HEAD.pack(kind, len(body)) + body)
    except OSError as error:
        raise ConnectionLostError(f"the connection broke while sending ({error})") from None


def receive(connection: socket.socket, longest: int = LONGEST_FRAME) -> tuple[int, bytes]:
    """Return the next frame; raises `ConnectionLostError` at the end, or for a frame that is too long."""
    kind, size = _HEAD.unpack(_exactly(connection, _HEAD.size))
    if size > longest:
        raise ConnectionLostError(f"a frame of {size} bytes was announced, at most {longest} are taken")
    return kind, _exactly(connection, size)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        try:
            part = connection.recv(min(size, 1 << 16))
        except OSError as error:
            raise ConnectionLostError(f"the connection broke while receiving ({error})") from None
        if not part:
            raise ConnectionLostError("the other side closed the connection")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


@dataclass(frozen=True)
class Party:
    """A holder of a certificate: `name`.pem and `name`.key in a folder of its own."""

    name: str
    folder: Path


def make_certificates(authority_folder: Path, parties: list[Party]) -> None:
    """Write a certificate authority and a certificate for each party, all for the loopback address: for tests and
    trials.

    A deployment brings certificates of its own. Keys are readable by their owner alone.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(
        "causeway trial authority",
        authority_key.public_key(),
        "causeway trial authority",
        authority_key,
        authority=True,
    )
    (authority_folder / "authority.pem").write_bytes(authority.public_bytes(Encoding.PEM))
    for party in parties:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(
            party.name, key.public_key(), "causeway trial authority", authority_key, authority=False
        )
        (party.folder / f"{party.name}.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
        write_secret(
            party.folder / f"{party.name}.key", key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        )


def write_secret(path: Path, content: bytes) -> None:
    """Write a file that its owner alone can read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content)


def _certificate(
    name: str, key: ec.EllipticCurvePublicKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey, authority: bool
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
            "crl_sign",
        ),
        False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=0 if authority else None), critical=True)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=authority, **usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if not authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def context(authority: Path | bytes, party: Party | None, serving: bool) -> ssl.SSLContext:
    """Return a TLS 1.3 context that trusts an authority; with a party, it shows that party's certificate.

    Servers ask for no client certificate: agents are anonymous, and their tokens admit them. Servers and designer show
    each other theirs.

    Parameters
    ----------
    authority : Path or bytes
        Folder of `authority.pem`, or its content, for a caller that has checked it: the file may change later.
    party : Party or None
    serving : bool
        Whether it is a server's side.

    Raises
    ------
    CausewayError
        If the party's certificate or its key cannot be read.
    """
    pem = (authority / "authority.pem").read_bytes() if isinstance(authority, Path) else authority
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serving else ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.load_verify_locations(cadata=pem.decode("ascii"))
    if serving:
        made.verify_mode = ssl.CERT_OPTIONAL
    if party is not None:
        own = party.folder / party.name
        try:
            made.load_cert_chain(f"{own}.pem", f"{own}.key")
        except OSError as error:  # also ssl.SSLError
            raise CausewayError(
                f"{own}.pem, {own}.key: no readable certificate with its key ({error.strerror}); restore both"
            ) from None
    return made


@contextlib.contextmanager
def connected(
    port: int, authority: Path | bytes, server: str, party: Party | None = None, timeout: float = TIMEOUT_S
) -> Iterator[ssl.SSLSocket]:
    """Connect to a server on the loopback address, as a party or anonymously.

    Parameters
    ----------
    port : int
    authority : Path or bytes
        Folder of the certificates' authority, or its certificate; see `context`.
    server : str
        The name in the server's certificate.
    party : Party or None
    timeout : float, seconds

    Raises
    ------
    ConnectionLostError
        If there is no such server.
    CausewayError
        As `context`.
    """
    try:
        made = context(authority, party, serving=False)
        plain = socket.create_connection(("127.0.0.1", port), timeout)
        secure = made.wrap_socket(plain, server_hostname=server)
    except OSError as error:
        raise ConnectionLostError(f"no connection to the {server} on port {port} ({error})") from None
    with secure:
        yield secure


def peer_of(connection: ssl.SSLSocket) -> str | None:
    """Return the name in the certificate that the other side showed, None for an anonymous one."""
    shown = connection.getpeercert()
    if not shown:
        return None
    return next((pair[1] for part in shown["subject"] for pair in part if pair[0] == "commonName"), None)


def exchange(connection: socket.socket, kind: int, body: bytes, answers: Mapping[int, Callable[[bytes], T]]) -> T:
    """Send a frame and return the reply's body, converted by the function for its kind; raises
    `CausewayError` for another kind.
    """
    send(connection, kind, body)
    answer, content = receive(connection)
    if answer not in answers:
        raise CausewayError(f"the server answered: {content[:300].decode('utf-8', 'replace')}")
    return answers[answer](content)
