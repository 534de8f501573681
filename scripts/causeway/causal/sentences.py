"""Sentences: each cause in words, with its numbers and the assumption it rests on."""

from collections.abc import Mapping, Sequence

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
SINGULAR = {"+": "raises", "-": "lowers", "?": "changes, in no single direction,"}
ASSUMPTION = "direct cause if no unmeasured common cause"
FEW = "too few effective samples behind it"
AMOUNTS = {"memory_stall": "the mean memory stall"}
"""Targets that are measured; of all others the deviation is."""
SETTINGS = {
    "launches_in_flight": "Nothing else in flight on the device",
    "transfers_in_flight": "No transfer in flight on the device",
    "h2d_bytes_in_flight": "No concurrent host-to-device copy",
    "d2h_bytes_in_flight": "No concurrent device-to-host copy",
    "d2d_bytes_in_flight": "No concurrent device-to-device copy",
    "p2p_bytes_in_flight": "No concurrent copy between devices",
}
PARTS = {"block": "Blocks", "grid": "Grids"}


def short(value: float) -> str:
    """Return a share or robustness without the leading zero, to two digits."""
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.1f}"


def what_varies(target: str) -> str:
    """Return the words for a target."""
    return {"kernel_variability": "its deviation", "memory_stall": "its memory stall"}.get(target, f"the deviation of {target}")


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
    why: str = FEW,
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
    why : str
        The reason of a verdict other than supported.
    """
    subject = f"{feature} = {level}" if level else SUBJECTS.get(feature, f"Higher values of {feature}")
    if members > 1:
        subject += f" (or of the {members - 1} column{'s' if members > 2 else ''} that move{'s' if members == 2 else ''} with it)"
    verb = (SINGULAR if level else VERBS)[sign]
    percent, low, high = contribution
    amount = f"{percent:.0f} % of its variance [{low:.0f}, {high:.0f}]"
    found = "not resampled" if stability is None else f"found in {100 * stability:.0f} % of resamples"
    fragile = ", fragile" if robustness < FRAGILE_BELOW else ""
    tail = "" if verdict == "supported" else f"; {verdict}: {why}"
    return f"{subject} {verb} {what_varies(target)} ({amount}); {found}; robustness {short(robustness)}{fragile}; {ASSUMPTION}{tail}."


def what_if_sentence(row: Mapping, target: str) -> str:
    """Return the sentence of one what-if: a row of `whatif.parquet` that was not refused."""
    feature, before, after = row["feature"], row["from"], row["to"]
    amount = AMOUNTS.get(target, "the mean absolute deviation")
    if after == "none":
        subject = SETTINGS.get(feature, f"{feature} at zero")
    elif ", " in after:
        subject = f"In each kernel the best value of {feature} that it was launched with ({after})"
    elif before.startswith("as it was"):
        subject = f"{feature} = {after}" if "percentile" not in after and "median" not in after else f"{feature} at {after}"
    else:
        part = PARTS.get(feature.partition("_")[0])
        subject = f"{part} of {after} instead of {before} ({feature})" if part else f"{feature} = {after} instead of {before}"
    change, low, high = row["change_percent"], row["change_low"], row["change_high"]
    if low <= 0 <= high:
        return f"{subject}: no clear change of {amount} ({change:+.0f} % [{low:+.0f}, {high:+.0f}])."
    if change > 0:
        return f"{subject}, the best of what was observed, would raise {amount} by {change:.0f} % [{low:.0f}, {high:.0f}]."
    return f"{subject} would cut {amount} by {-change:.0f} % [{-high:.0f}, {-low:.0f}], if no unmeasured common cause."


def nothing_found(n_effective: float, share: float, near: Sequence[str] = ()) -> str:
    """Return the sentence for a search that found no cause, or only such that did not hold in resamples (`near`)."""
    if near:
        return f"No cause found that holds: {', '.join(near)}; {n_effective:,.0f} effective samples."
    least = max(100 * share, 0.1)
    return f"No cause found: {n_effective:,.0f} effective samples; an effect above {least:.1f} % of the variance would have been seen."
