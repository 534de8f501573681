"""Setting up a deployment of two servers: keys, certificates, catalogue and tokens, one folder per party.

Everything secret is drawn from the system's entropy and written for its owner alone. The certificates are for the
loopback address: a real deployment replaces them, keeps each party's folder on that party's machine and shares
`public/`.
"""

import contextlib
import fcntl
import json
import math
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import on_disk, write_whole, written_whole
from causeway.core.tables import write_json
from causeway.fleet.attribution import catalogue as catalogues
from causeway.fleet.deployment.public_folder import publish
from causeway.fleet.deployment.transport import Party, make_certificates, write_secret
from causeway.fleet.protection.envelope import SERIAL_BYTES, Issuer
from causeway.fleet.protection.ledger import check_budget
from causeway.fleet.protection.modes import WINDOWS
from causeway.fleet.release.release import POPULATION

PARTIES = ("leader", "helper", "designer", "issuer")
TOKEN_BYTES = 1024
"""Space that is taken for a token's file before one is booked; its line has some 220 bytes."""
RESTORE = "restore it from a copy and never delete it: without it every user would be given a second token"
"""What to do about an issuer's record; other results of Causeway may be deleted and made again, this one not."""


def prepare(
    folder: Path,
    runs: list[catalogues.TrainingRun],
    settings: Mapping,
    *,
    epoch: int,
    name: str,
    window_s: float,
    most_reports: int,
) -> None:
    """Write the folders `public`, `leader`, `helper`, `designer` and `issuer`; each party's own holds the pin of the
    public one.

    Parameters
    ----------
    folder : Path
    runs : list of TrainingRun
        From which the catalogue is learnt.
    settings : mapping
        `fleet` of the configuration.
    epoch : int
        Number of the day.
    name : str
        Of the fleet, in ledgers and releases.
    window_s : float
        Length of a window; 3,600 for hours of a day.
    most_reports : int
        Servers refuse further ones.

    Raises
    ------
    CausewayError
        For settings under which the epoch could not be released (`ledger.check_budget`, fewer reports than the
        threshold), an epoch, a name or a window's length that is none, or a folder that a deployment has already.
    """
    check_budget(settings)
    if not 0 <= epoch < 1 << 32:
        raise CausewayError(f"epoch {epoch} is none; expected a number from 0 to {(1 << 32) - 1}")
    if not POPULATION.fullmatch(name):
        raise CausewayError(f"the fleet's name {name!r}: expected up to 64 letters, digits, `_`, `.` and `-`")
    if not 0 < window_s < math.inf:
        raise CausewayError(f"a window of {window_s:g} s is none; expected seconds above 0")
    if most_reports < settings["release_threshold"]:
        raise CausewayError(
            f"at most {most_reports} reports would be taken, fewer than fleet/release_threshold,"
            f" {settings['release_threshold']}, so that nothing were released"
        )
    if (folder / "public").exists():
        raise CausewayError(f"{folder}: holds a deployment already; give a folder of its own for each")
    public = folder / "public"
    for part in ("public", *PARTIES):
        (folder / part).mkdir(parents=True)
    catalogue = catalogues.build(
        runs,
        key=secrets.token_bytes(32),
        k=settings["k"],
        threshold=settings["threshold"],
        margin=settings["margin"],
        slots=settings["kernel_cells"],
        simulated=False,
    )
    signer = Ed25519PrivateKey.generate()
    issuer = Ed25519PrivateKey.generate()
    text = catalogue.encoded()
    (public / "catalogue.json").write_bytes(text)
    (public / "catalogue.sig").write_bytes(catalogues.sign(text, signer))
    (public / "designer.pub").write_bytes(signer.public_key().public_bytes_raw())
    (public / "issuer.pub").write_bytes(issuer.public_key().public_bytes_raw())
    write_secret(folder / "designer" / "sign.key", signer.private_bytes_raw())
    write_secret(folder / "issuer" / "sign.key", issuer.private_bytes_raw())
    for role in ("leader", "helper"):
        key = X25519PrivateKey.generate()
        write_secret(folder / role / "seal.key", key.private_bytes_raw())
        (public / f"{role}.pub").write_bytes(key.public_key().public_bytes_raw())
    make_certificates(public, [Party(role, folder / role) for role in ("leader", "helper", "designer")])
    facts = {
        "fleet": dict(settings),
        "epoch": epoch,
        "name": name,
        "windows": WINDOWS,
        "window_s": window_s,
        "most_reports": most_reports,
    }
    facts |= {"pin": catalogues.digest_of(text), "begun": time.time(), "epoch_key": secrets.token_hex(32)}
    pin = publish(public, facts, signer)
    for part in PARTIES:
        write_whole(folder / part / "pin", pin + "\n")


def issue(folder: Path, user: str, epoch: int, count: int) -> list[dict]:
    """Return tokens for a user, from the issuer's folder, which remembers how many each user has had.

    Raises
    ------
    CausewayError
        When the user's tokens of the epoch are spent, the folder is not an issuer's, or its record of the epoch is
        damaged or missing.
    """
    try:
        key = Ed25519PrivateKey.from_private_bytes((folder / "sign.key").read_bytes())
    except (OSError, ValueError) as error:
        raise CausewayError(f"{folder}: holds no issuer's key ({error})") from None
    tokens = []
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of two requests racing, the second sees what the first was given
        state = folder / f"issued_{epoch}.json"
        issuer = Issuer(key, issued=_issued(state, state.with_suffix(".begun")))
        for _ in range(count):
            serial = secrets.token_bytes(SERIAL_BYTES)
            signature = issuer.issue(user, epoch, serial)
            write_json(issuer.issued, state)
            tokens.append({"epoch": epoch, "serial": serial.hex(), "signature": signature.hex()})
    return tokens


def give(folder: Path, user: str, epoch: int, out: Path) -> None:
    """Write a token for a user to a file of its own, whose space on the disk is taken before the token is booked.

    Parameters
    ----------
    folder : Path
        The issuer's.
    user : str
    epoch : int
    out : Path
        Readable by its owner alone; an older file stays if there is no token.

    Raises
    ------
    CausewayError
        As `issue`, or if the file cannot be written.
    """
    if out.exists() and not out.is_file():
        raise CausewayError(f"{out}: is no ordinary file; give a name for the token's file")
    with contextlib.ExitStack() as stack:
        try:
            partial = stack.enter_context(written_whole(out))
            write_secret(partial, bytes(TOKEN_BYTES))
            on_disk(partial)
        except OSError as error:
            raise CausewayError(
                f"{out}: cannot be written ({error.strerror}); give a file on a disk with space"
            ) from None
        line = json.dumps(issue(folder, user, epoch, 1)[0], sort_keys=True)
        with open(partial, "r+b") as handle:
            handle.write(line.encode() + b"\n")
            handle.truncate()


def _issued(state: Path, begun: Path) -> dict[str, int]:
    """Return how many tokens of an epoch each user has had; `begun` marks that the record exists from now on."""
    if not state.exists():
        if begun.exists():
            raise CausewayError(f"{state}: is missing, though tokens of its epoch were given; {RESTORE}")
        write_json({}, state)
    if not begun.exists():
        write_whole(begun, b"")
    try:
        issued = json.loads(state.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CausewayError(f"{state}: cannot be read ({error}); {RESTORE}") from None
    if not isinstance(issued, dict) or not all(type(count) is int for count in issued.values()):
        raise CausewayError(f"{state}: holds no numbers of tokens by user; {RESTORE}")
    return issued
