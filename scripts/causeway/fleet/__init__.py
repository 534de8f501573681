"""Fleet mode: what runs on many GPUs, and how well, without learning who runs what. The method and its limits stand in `docs/fleet.md`.

Cryptography and noise come from libraries (cryptography, opendp, dp-accounting, tenseal); what is ours is how they are put together.
"""

from importlib.util import find_spec

from causeway.errors import CausewayError

NEEDED = ("cryptography", "datasketch", "dp_accounting", "opendp", "tenseal")

if missing := [name for name in NEEDED if find_spec(name) is None]:
    raise CausewayError(
        f"fleet mode needs packages that are not installed: {', '.join(missing)};"
        " run `pip install --require-hashes --no-deps -r requirements-fleet.lock`"
    )
