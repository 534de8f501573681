"""Sentences: each cause in words, with its numbers and the assumption it rests on."""

from collections.abc import Mapping, Sequence

from causeway.causal.robustness import FRAGILE_BELOW
from causeway.causal.words import called, capital

SUBJECTS = {
    "launches_in_flight": "More launches in flight on the same device when the kernel starts",
    "transfers_in_flight": "More transfers in flight on the same device when the kernel starts",
    "h2d_bytes_in_flight": "More bytes being copied host-to-device when the kernel starts",
    "d2h_bytes_in_flight": "More bytes being copied device-to-host when the kernel starts",
    "d2d_bytes_in_flight": "More bytes being copied device-to-device when the kernel starts",
    "p2p_bytes_in_flight": "More bytes being copied between devices when the kernel starts",
    "last_h2d_bytes": "Larger inputs (the last copy from the host before the kernel starts)",
    "queue_ns": "Longer waits in the queue before the start",
    "idle_before_ns": "Longer idle times of the device before the start",
    "iteration_position": "Later positions in the iteration",
    "since_start_ns": "Later launches in the run",
    "transfer_bytes": "More bytes in the linked transfer",
    "grid_x": "Larger grids",
    "grid_y": "Larger grids in y",
    "grid_z": "Larger grids in z",
    "block_x": "Larger blocks",
    "block_y": "Larger blocks in y",
    "block_z": "Larger blocks in z",
    "registers_per_thread": "More registers per thread",
    "static_shared_bytes": "More static shared memory",
    "dynamic_shared_bytes": "More dynamic shared memory",
}
PLACES = {
    "rank": "Being on rank {}",
    "device": "Being on device {}",
    "node": "Being on node {}",
    "stream": "Being on stream {}",
    "transfer_copy_kind": "A linked transfer from {}",
}
RAISE = {"+": ("raise", "raises"), "-": ("lower", "lowers"), "?": ("change, in no single direction,", "changes, in no single direction,")}
MAKE = ("make", "makes")
MOVED = {"+": "slower", "-": "faster"}
VARIED = {"+": "more", "-": "less"}
"""Verbs for many and for one; the words for what a launch's run time does, and for how much a measured value varies."""
ASSUMPTION = "if no unmeasured common cause"
FEW = "too few effective samples behind it"
DEVIATIONS = {"kernel_variability": "its deviation", "memory_stall": "its memory stall"}
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
EVERYWHERE = {
    "rank": "All launches as on rank {}",
    "device": "All launches as on device {}",
    "node": "All launches as on node {}",
    "stream": "All launches as on stream {}",
    "transfer_copy_kind": "Linked transfers from {} only",
}
NEGLIGIBLE = 0.5
"""Percent; what is smaller is no change."""


def short(value: float) -> str:
    """Return a share or robustness without the leading zero, to two digits."""
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.1f}"


def percent(value: float, signed: bool = False) -> str:
    """Return a percentage in whole numbers, never -0."""
    whole = round(value)
    return f"{whole:+d}" if signed and whole else f"{whole:d}"


def what_varies(target: str) -> str:
    """Return the words for a target."""
    return DEVIATIONS.get(target, f"the deviation of {target}")


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
    group: str = "",
    resamples: int = 0,
    setting: Mapping | None = None,
    sign_of: str = "target",
) -> str:
    """Return the sentence of one cause: what setting it would change, or that it acts; then what supports this, and its share.

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
    group : str
        The feature's group.
    resamples : int
    setting : mapping or None
        Its row of `whatif.parquet`, if there is one with a change.
    sign_of : str
        What the sign is about, "target" or "value".
    """
    name = called(feature, group)
    subject = PLACES.get(feature, f"{capital(name)} = {{}}").format(level) if level else SUBJECTS.get(feature, f"Higher values of {name}")
    if members > 1:
        subject += f" (or of the {members - 1} column{'s' if members > 2 else ''} that move{'s' if members == 2 else ''} with it)"
    mean, low, high = contribution
    whose = "its variance" if sign_of == "target" and (sign == "?" or target in DEVIATIONS) else f"the variance of {what_varies(target)}"
    ends = f"{percent(mean)} % of {whose} [{percent(low)}, {percent(high)}]"
    acts = f"{subject} {_does(sign, sign_of, target, bool(level))} and {'carries' if level else 'carry'} {ends}"
    found = "not resampled" if stability is None else f"found in {100 * stability:.0f} % of {resamples} resamples"
    fragile = ", fragile" if robustness < FRAGILE_BELOW else ""
    backed = f"{verdict if verdict == 'supported' else f'{verdict}, {why}'}: {found}, robustness {short(robustness)}{fragile}"
    if setting is None:
        return f"{acts}, {ASSUMPTION}; {backed}."
    if unclear(setting):
        return f"{acts}, {ASSUMPTION}; {backed}. {what_if_sentence(setting, target, group)}"
    return f"{what_if_sentence(setting, target, group).removesuffix('.')}; {backed}. {acts}."


def _does(sign: str, sign_of: str, target: str, singular: bool) -> str:
    """Return what a cause does, to the target or to the measured value, in words."""
    if sign_of == "value":
        if target in DEVIATIONS:
            return f"{MAKE[singular]} the launch itself {MOVED[sign]}"
        return f"{RAISE[sign][singular]} {target} itself"
    if sign == "?" or target in DEVIATIONS:
        return f"{RAISE[sign][singular]} {what_varies(target)}"
    return f"{MAKE[singular]} {target} vary {VARIED[sign]}"


def unclear(row: Mapping) -> bool:
    """Tell whether a what-if shows no clear change of any size."""
    low, high = row["change_low"], row["change_high"]
    return low <= 0 <= high or max(abs(low), abs(high)) < NEGLIGIBLE or abs(row["change_percent"]) < NEGLIGIBLE


def what_if_sentence(row: Mapping, target: str, group: str = "") -> str:
    """Return the sentence of one what-if: a row of `whatif.parquet` that was not refused."""
    subject = _set_to(row, group)
    amount = AMOUNTS.get(target, "the mean absolute deviation")
    change, low, high = row["change_percent"], row["change_low"], row["change_high"]
    if unclear(row):
        return f"{subject}: no clear change of {amount} ({percent(change, True)} % [{percent(low, True)}, {percent(high, True)}])."
    if change > 0:
        others = "" if row.get("asked") or row["to"] == "none" else "; other levels that were observed would raise it more"
        return f"{subject} would raise {amount} by {percent(change)} % [{percent(low)}, {percent(high)}], {ASSUMPTION}{others}."
    return f"{subject} would cut {amount} by {percent(-change)} % [{percent(-high)}, {percent(-low)}], {ASSUMPTION}."


def _set_to(row: Mapping, group: str) -> str:
    """Return what is set to what, in words."""
    feature, before, after = row["feature"], row["from"], row["to"]
    if row.get("asked"):
        values = zip(feature.split(", "), after.split(", "), strict=False)
        return f"{capital(row['asked'])} ({'; '.join(f'{called(name, group)}: {value}' for name, value in values)})"
    name = called(feature, group)
    if after == "none":
        return SETTINGS.get(feature, f"{capital(name)} at zero")
    if ", " in after:
        return f"In each kernel the best {name} that it was launched with ({after})"
    if "percentile" in after or "median" in after:
        return f"{capital(name)} always at {after}"
    if before.startswith("as it was"):
        return EVERYWHERE.get(feature, f"{capital(name)} = {{}}").format(after)
    part = PARTS.get(feature.partition("_")[0])
    return f"{part} of {after} instead of {before}" if part else f"{capital(name)} of {after} instead of {before}"


def nothing_found(n_effective: float, share: float, near: Sequence[str] = ()) -> str:
    """Return the sentence for a search that found no cause, or only such that did not hold in resamples (`near`)."""
    if near:
        return f"No cause found that holds: {', '.join(near)}; {n_effective:,.0f} effective samples."
    least = max(100 * share, 0.1)
    return f"No cause found: {n_effective:,.0f} effective samples; an effect above {least:.1f} % of the variance would have been seen."
