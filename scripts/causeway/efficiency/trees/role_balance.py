"""Load balance of like with like: within groups of ranks that do the same work, and what the groups differ by."""

from collections.abc import Sequence

from causeway.core.vocabulary import BALANCE
from causeway.efficiency.device_time.states import time_in
from causeway.efficiency.trees.assemble import MeasuredDataset
from causeway.efficiency.trees.trees import ratio

ONE_RANK = "one rank has computing launches: there is nothing to compare"
SHARED = "ranks share GPUs, whose time belongs to no single role"


def role_balance(dataset: MeasuredDataset, roles: Sequence[tuple[list[int], list[str]]], sentence: str | None) -> dict:
    """Return the roles of a dataset and what the imbalance of computing time is made of.

    within_ns = sum over roles of G_r max C_r - sum C_r; between_ns = G max C - sum C - within_ns: what devices compute
    less than the busiest one because their ranks do other work.

    Parameters
    ----------
    dataset : MeasuredDataset
    roles : sequence of (list of int, list of str)
        Ranks of each role, and kernels that it is described by.
    sentence : str or None
        That ranks do different work.

    Returns
    -------
    dict
        reason (why nothing is compared, or null), sentence, within_ns, between_ns (null where not told), and `roles`:
        role, ranks, kernels, n_devices, compute_ns, load_balance (null of a single device).
    """
    found = []
    within = 0
    for number, (ranks, kernels) in enumerate(roles):
        compute = [int(time_in(dataset.total[row], "compute")) for row in dataset.indices(set(ranks))]
        total = sum(compute)
        longest = max(compute, default=0)
        within += len(compute) * longest - total
        balance = ratio(total, len(compute) * longest) if len(compute) > 1 else None
        facts = {"n_devices": len(compute), "compute_ns": total, BALANCE: balance}
        found.append({"role": number, "ranks": ranks, "kernels": kernels} | facts)
    reason = ONE_RANK if sum(len(ranks) for ranks, _ in roles) < 2 else SHARED if dataset.shared else None
    everyone = [int(time_in(states, "compute")) for states in dataset.total[: len(dataset.devices)]]
    whole = len(everyone) * max(everyone, default=0) - sum(everyone)
    parts = {"within_ns": None, "between_ns": None} if reason else {"within_ns": within, "between_ns": whole - within}
    return {"reason": reason, "sentence": sentence} | parts | {"roles": found}
