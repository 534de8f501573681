"""Sentences: each cause in words, with its numbers and the assumption it rests on."""

from causeway.causal.robustness import FRAGILE_BELOW

SUBJECTS = {
    "launches_in_flight": "More launches in flight on the same device when the kernel starts",
    "transfers_in_flight": "More transfers in flight on the same device when the kernel starts",
    "h2d_bytes_in_flight": "More bytes being copied host-to-device when the kernel starts",
    "d2h_bytes_in_flight": "More bytes being copied device-to-host when the kernel starts",
    "d2d_bytes_in_flight": "More bytes being copied device-to-device when the kernel starts",
    "p2p_bytes_in_flight": "More bytes being copied between devices when the kernel starts",
    "queue_ns": "Longer waits in the queue before the start",
    "idle_before_ns": "Longer idle times of the device before the start",
    "iteration_position": "Later positions in the iteration",
    "since_start_ns": "Later launches in the run",
    "transfer_bytes": "More bytes in the linked transfer",
    "grid_x": "Larger grids (grid_x)",
    "grid_y": "Larger grids (grid_y)",
    "grid_z": "Larger grids (grid_z)",
    "block_x": "Larger blocks (block_x)",
    "block_y": "Larger blocks (block_y)",
    "block_z": "Larger blocks (block_z)",
    "registers_per_thread": "More registers per thread",
    "static_shared_bytes": "More static shared memory",
    "dynamic_shared_bytes": "More dynamic shared memory",
}
VERBS = {"+": "raise", "-": "lower", "?": "change, in no single direction,"}
ASSUMPTION = "direct cause if no unmeasured common cause"


def short(value: float) -> str:
    """Return a share or robustness without the leading zero, to two digits."""
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.1f}"


def what_varies(target: str) -> str:
    """Return the words for a target."""
    return {"kernel_variability": "its deviation", "memory_stall": "the deviation of its memory stall"}.get(
        target, f"the deviation of {target}"
    )


def cause_sentence(
    feature: str,
    members: int,
    sign: str,
    level: str,
    target: str,
    contribution: tuple[float, float, float],
    stability: float | None,
    robustness: float,
    verdict: str,
) -> str:
    """Return the sentence of one cause.

    Parameters
    ----------
    members : int
        Number of merged columns that the feature stands for.
    level : str
        The level of a category that stands out; empty for numbers.
    contribution : tuple of float
        Percent, lower and upper end of its interval.
    """
    subject = f"Launches with {feature} = {level}" if level else SUBJECTS.get(feature, f"Higher values of {feature}")
    if members > 1:
        subject += f" (or of the {members - 1} column{'s' if members > 2 else ''} that move{'s' if members == 2 else ''} with it)"
    verb = {"+": "deviate more in", "-": "deviate less in", "?": "differ in"}[sign] if level else VERBS[sign]
    percent, low, high = contribution
    amount = f"{percent:.0f} % of its variance [{low:.0f}, {high:.0f}]"
    found = "not resampled" if stability is None else f"found in {100 * stability:.0f} % of resamples"
    fragile = ", fragile" if robustness < FRAGILE_BELOW else ""
    tail = "" if verdict == "supported" else f"; {verdict}: too few effective samples behind it"
    return f"{subject} {verb} {what_varies(target)} ({amount}); {found}; robustness {short(robustness)}{fragile}; {ASSUMPTION}{tail}."


def nothing_found(n_effective: float, share: float) -> str:
    """Return the sentence for a search that found no cause."""
    least = max(100 * share, 0.1)
    return f"No cause found: {n_effective:,.0f} effective samples; an effect above {least:.1f} % of the variance would have been seen."
