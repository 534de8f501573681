"""Fleet mode: which applications run on many GPUs, and how well, with differential privacy for each user.

Cryptography and noise come from libraries (cryptography, opendp, dp-accounting, tenseal); ours is how they are put
together: docs/fleet.md describes it and its limits. Runs that a user profiles on purpose stand in the other wings.

Imports run from left to right: `__main__` > `deployment`, `study` > `release` > `protection`, `world` > `attribution`,
`overhead` > `draws`, `report_layout`.
"""

from importlib.util import find_spec

from causeway.core.errors import CausewayError

NEEDED = ("cryptography", "datasketch", "dp_accounting", "opendp", "tenseal")


def require_packages() -> None:
    """Refuse to go on where a package of the extra is missing; each folder that imports one asks this first.

    The measurement of the overhead needs none, so that it runs where there is a GPU and little else.

    Raises
    ------
    CausewayError
        If one is missing; it names all that are, and what installs them.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise CausewayError(
            f"fleet mode needs packages that are not installed: {', '.join(missing)};"
            " run `pip install --require-hashes --no-deps -r requirements-fleet.lock`"
        )
