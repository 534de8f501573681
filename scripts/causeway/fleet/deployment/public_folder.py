"""The deployment's public folder, and the one key that vouches for all of it.

`deployment.json` holds the settings and the hash of every other file of the folder; `deployment.sig` is its signature
by the designer's key. Each party gets that public key, the pin, by another way than the folder: what a party trusts is
then what the designer signed, or nothing.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from causeway.core.errors import CausewayError
from causeway.core.files.whole_files import write_whole
from causeway.core.tables import write_json

FACTS = "deployment.json"
SIGNATURE = "deployment.sig"


@dataclass(frozen=True, kw_only=True)
class SignedFolder:
    """A public folder as it was when its signature was checked: what is used later is what was checked.

    Attributes
    ----------
    facts : dict
        Settings of the deployment.
    digest : str
        SHA-256 of `deployment.json`, 64 hex digits.
    files : dict of str to bytes
        Content of every other file, by name.
    """

    facts: dict
    digest: str
    files: dict[str, bytes]


def publish(public: Path, facts: Mapping, key: Ed25519PrivateKey) -> str:
    """Write the signed facts about a public folder, whose other files are complete.

    Parameters
    ----------
    public : Path
    facts : mapping
        Settings of the deployment.
    key : Ed25519PrivateKey
        The designer's.

    Returns
    -------
    str
        The pin: the public key as 64 hex digits, for every party, by another way than this folder.
    """
    files = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(public.iterdir())
        if file.name not in (FACTS, SIGNATURE)
    }
    write_json({**facts, "files": files}, public / FACTS)
    write_whole(public / SIGNATURE, key.sign((public / FACTS).read_bytes()))
    return key.public_key().public_bytes_raw().hex()


def read_signed(public: Path, pin: str) -> SignedFolder:
    """Return a public folder, once its signature and the hash of each of its files were checked.

    Parameters
    ----------
    public : Path
    pin : str
        The designer's public key, 64 hex digits; not from this folder.

    Raises
    ------
    CausewayError
        If the pinned key did not sign it, or a file is missing, changed or not among the signed ones.
    """
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(pin.strip()))
    except ValueError:
        raise CausewayError(
            "the pin is no public key; expected 64 hex digits, as the designer published them"
        ) from None
    try:
        text = (public / FACTS).read_bytes()
        key.verify((public / SIGNATURE).read_bytes(), text)
        facts = json.loads(text)
        files = {file.name: file.read_bytes() for file in public.iterdir() if file.name not in (FACTS, SIGNATURE)}
        hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        changed = sorted(name for name in {*files, *facts["files"]} if hashes.get(name) != facts["files"].get(name))
    except InvalidSignature:
        raise CausewayError(
            f"{public}: the pinned key did not sign this deployment; it was changed on its way or is another one's"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        raise CausewayError(f"{public}: no readable deployment with its signature ({type(error).__name__})") from None
    if changed:
        raise CausewayError(f"{public}: {', '.join(changed)} changed since the deployment was signed; fetch it again")
    return SignedFolder(facts=facts, digest=hashlib.sha256(text).hexdigest(), files=files)
