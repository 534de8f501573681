"""Findings of the efficiency trees: what device time is lost to, and why devices are idle.

Losses below the share `NOTICEABLE` of the device time are no findings of their own; the waterfall shows them.
"""

from collections.abc import Sequence
from typing import Any

from causeway.core.formatting import counted, quantity, significant, time, time_three_digits
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import value_at, within
from causeway.core.schemas import Row
from causeway.core.vocabulary import COMM_AWARE, MEMORY_STALL
from causeway.findings import headlines, suggestions
from causeway.findings.headlines import in_percent
from causeway.findings.record import NOTICEABLE, Finding, link_to, made_from, of_dataset

MOST_UNFILLED = 3
"""Kernels that cannot fill the device and are findings, as many as findings stand in sight; the page lists more."""
LESS_COMPUTE = "{count} * {most} - {sum}".format(
    count=value_at(COMM_AWARE, "n_devices", kind="integer"),
    most=value_at(COMM_AWARE, "kernel_max_ns", kind="integer"),
    sum=value_at(COMM_AWARE, "kernel_ns", kind="integer"),
)
"""What devices compute less than the busiest one, as an expression."""


@made_from("efficiency")
def efficiency_findings(document: Row) -> list[Finding]:
    """Return the findings of one dataset's `efficiency.json` beside its losses: imbalance, roles, migrations, kernels
    that cannot fill the device; none if nothing was measured.
    """
    total = gpu_time_ns(document)
    if not total:
        return []
    return [
        *_imbalance(document, total),
        *_roles(document, total),
        *_migrations(document, total),
        *_unfilled(document, total),
    ]


def gpu_time_ns(document: Row) -> int:
    """Return the dataset's GPU time: elapsed time x devices, ns; 0 if nothing was measured."""
    return 0 if document["why"] else document["elapsed_ns"] * document["device"]["n_devices"]


def little_memory_stall(document: Row) -> Finding | None:
    """Return that the memory stall of a dataset costs too little to be explained; None where it does not, or nothing
    was measured.

    However long launches take beside the copies linked to them, without these copies the devices would win no more
    time than copies run without a kernel beside them: where that is below `NOTICEABLE` of the GPU time, as of a memset
    of a microsecond before each launch of milliseconds, what varies is the duration of the launches, which is another
    target, and neither a cause nor a kernel is named.
    """
    total = gpu_time_ns(document)
    alone = _exposed_ns(document) if total else 0
    if not total or alone >= NOTICEABLE * total:
        return None
    percent = 100 * alone / total
    few = "< 0.1 %" if 0 < percent < 0.1 else in_percent(percent)
    return of_dataset(
        document["dataset"],
        _path(document),
        within(_path(document), _exposed_query()),
        value=alone,
        unit="ns",
        target=MEMORY_STALL,
        kind="variability",
        quantity="exposed transfers",
        headline=(
            f"Memory stall costs little: copies run without a kernel beside them for {time(alone)}, {few} of the GPU"
            " time."
        ),
        sentence=(
            f"Memory copies and memsets run alone, without a kernel beside them, for {time_three_digits(alone)} of"
            f" {time_three_digits(total)} of GPU time: no memory stall costs more than that."
        ),
        link=link_to(document["dataset"], MEMORY_STALL),
        is_negligible=True,
    )


def _exposed_ns(document: Row) -> int:
    """Return how long copies run without a kernel beside them, over all devices, ns; migrations are none."""
    alone = sum(int(device["exposed_memory_ns"]) for device in document["breakdown"].values())
    return alone - _exposed_migrations_ns(document)


def _exposed_migrations_ns(document: Row) -> int:
    """Return how long pages of managed memory move while nothing else runs, over all devices, ns."""
    return sum(device.get("exposed_migrations_ns", 0) for device in document["breakdown"].values())


def _exposed_query() -> str:
    """Return the expression of `_exposed_ns`."""
    return f"{_over_devices('exposed_memory_ns')} - coalesce({_over_devices('exposed_migrations_ns')}, 0)"


def _path(document: Row) -> str:
    return f"{document['dataset']}/efficiency.json"


def finding_of(document: Row, *, expression: str, **facts: Any) -> Finding:
    """Return a finding of the whole dataset: a number that an SQL expression gives from the document."""
    query = within(_path(document), expression)
    link = link_to(document["dataset"], "efficiency")
    return of_dataset(document["dataset"], _path(document), query, kind="efficiency", link=link, **facts)


def _differ(document: Row) -> bool:
    """Return whether ranks do different work, and what of their imbalance that is."""
    roles = document.get("roles")
    return roles is not None and len(roles["roles"]) > 1 and roles["within_ns"] is not None


def _imbalance(document: Row, total: int) -> list[Finding]:
    """Return that devices compute less than the busiest one, of ranks that do different work than that of their role,
    if that is a noticeable part of the GPU time (`total`, ns).

    That is no part of the GPU time like a loss: what a device does not compute it is idle, copies or communicates.
    """
    tree = document[COMM_AWARE]
    less = tree["n_devices"] * tree["kernel_max_ns"] - tree["kernel_ns"]
    expression = LESS_COMPUTE
    busiest = "the busiest one"
    if _differ(document):
        less = document["roles"]["within_ns"]
        expression = value_at("roles", "within_ns", kind="integer")
        busiest = "the busiest one of their role"
    if less < NOTICEABLE * total:
        return []
    finding = finding_of(
        document,
        key="load_imbalance",
        quantity="less compute than the busiest device",
        headline=(
            f"Devices compute {time(less)} less in all than the busiest one would: {in_percent(100 * less / total)} of"
            " the GPU time."
        ),
        value=less,
        unit="ns",
        expression=expression,
        sentence=(
            f"Devices compute {time_three_digits(less)} ({significant(100 * less / total, 2)} % of GPU time) less in"
            f" all than if each computed as long as {busiest}: a bound of what balance could save, part of the losses."
        ),
        suggestion=(
            "Spread the work evenly: compare the kernels of the busiest and the idlest device, and partition by"
            " measured cost."
        ),
    )
    return [finding]


def _roles(document: Row, total: int) -> list[Finding]:
    """Return that ranks do different work, if that costs a noticeable part of the GPU time (`total`, ns)."""
    if not _differ(document) or document["roles"]["between_ns"] < NOTICEABLE * total:
        return []
    value = document["roles"]["between_ns"]
    sentence = document["roles"]["sentence"]
    finding = finding_of(
        document,
        key="roles",
        quantity="less compute than the busiest device, between roles",
        headline=(
            f"Ranks do different work ({len(document['roles']['roles'])} roles); that leaves devices without compute"
            f" for {time(value)}."
        ),
        value=value,
        unit="ns",
        expression=value_at("roles", "between_ns", kind="integer"),
        sentence=(
            f"{sentence[:1].upper()}{sentence[1:]}; devices compute {time_three_digits(value)}"
            f" ({significant(100 * value / total, 2)} % of GPU time) less than the busiest one because of that."
        ),
        suggestion=(
            "Move layers or experts between roles until each role computes for as long; more microbatches shorten what"
            " a pipeline waits at its ends."
        ),
    )
    return [finding]


def _over_devices(key: str) -> str:
    """Return the expression of a sum over the breakdown of all devices."""
    return f"list_sum(json_extract(content, '$.breakdown.*.{key}')::BIGINT[])::BIGINT"


def _unfilled(document: Row, total: int) -> list[Finding]:
    """Return the kernels whose launches cannot fill the device, the one that leaves most of it idle first, as far as
    that is a noticeable part of the GPU time (`total`, ns).

    Launches with at most half as many blocks as the device has multiprocessors leave room for another launch like them,
    and so do blocks with at most half of the threads of a warp. Kernels that run at once fill the device together: as
    many blocks count as run at once on average.
    """
    shown = document.get("launch_shapes", ())
    busy = sum(device["kernel_ns"] for device in document["breakdown"].values()) if shown else 0
    summed = max(document["launch_path"]["kernel_ns"], busy) if shown else 0  # graphs are busy without launches
    rows: dict[str, list[tuple[int, int, int]]] = {}  # number of the row, and the share that is filled
    for number, row in enumerate(shown):
        filled = whole = 1
        if row["blocks"] and row["multiprocessors"] and 2 * row["blocks"] * summed <= row["multiprocessors"] * busy:
            filled = row["blocks"]
            whole = row["multiprocessors"]
        if row["threads"] and 2 * row["threads"] <= row["wave"]:
            filled *= row["threads"]
            whole *= row["wave"]
        if filled < whole:
            rows.setdefault(row["kernel"], []).append((number, filled, whole))
    findings = []
    for kernel, chosen in rows.items():
        parts = [
            f"{value_at('launch_shapes', number, 'duration_ns', kind='integer')}::HUGEINT"
            f" * {busy * (whole - filled)} // {summed * whole}"
            for number, filled, whole in chosen
        ]
        shapes = [document["launch_shapes"][number] for number, _, _ in chosen]
        lost = sum(
            shape["duration_ns"] * (busy * (whole - filled)) // (summed * whole)
            for shape, (_, filled, whole) in zip(shapes, chosen, strict=True)
        )
        if lost >= NOTICEABLE * total:
            findings.append(_unfilled_by(document, total, kernel, shapes, lost, f"({' + '.join(parts)})::BIGINT"))
    return sorted(findings, key=lambda finding: (-(finding.recoverable_ns or 0), finding.subject))[:MOST_UNFILLED]


def _unfilled_by(document: Row, total: int, kernel: str, shapes: Sequence[Row], lost: int, expression: str) -> Finding:
    """Return that launches of a kernel, of some shapes, cannot fill the device; `lost` of the GPU time is not used."""
    first = shapes[0]  # with the most time
    spent = sum(shape["duration_ns"] for shape in shapes)
    used = headlines.filled(first["blocks"], first["multiprocessors"], first["threads"], first["wave"])
    launches = counted(sum(shape["launches"] for shape in shapes), "launch")
    many = len(shapes) > 1
    return finding_of(
        document,
        key=f"unfilled_{kernel}",
        quantity="GPU time that launches cannot use",
        headline=(
            f"{headlines.short(kernel)} runs for {in_percent(100 * spent / total)} of the GPU time ({time(spent)}) on"
            f" {used}."
        ),
        value=lost,
        unit="ns",
        expression=expression,
        sentence=(
            f"{kernel_words(kernel)} runs for {time_three_digits(spent)} in {launches} that cannot fill the device:"
            f" {'most of that time' if many else 'each'} uses {used} at most."
            f" {significant(100 * lost / total, 2)} % of the GPU time is not used."
        ),
        n=sum(shape["launches"] for shape in shapes),
        recoverable_ns=lost,
        recoverable_query=within(_path(document), expression),
        suggestion=(
            "Launch more blocks, of a warp of threads or more each: split the work of a launch until there are at least"
            " as many blocks as multiprocessors, or run several such launches at once."
        ),
    )


def _migrations(document: Row, total: int) -> list[Finding]:
    """Return that pages of managed memory move while kernels run, or while nothing else does, if that is a noticeable
    part of the kernels' time or of the GPU time (`total`, ns), and not all of it was asked for.
    """
    moved = document.get("migrations")
    if not moved or all(row["migrations"] == row["prefetched"] for row in [*moved["kernels"], *moved["host"]]):
        return []
    under, kernels = (
        sum(device[key] for device in document["breakdown"].values()) for key in ("under_migrations_ns", "kernel_ns")
    )
    alone = _exposed_migrations_ns(document)
    if under < NOTICEABLE * kernels and alone < NOTICEABLE * total:
        return []
    most = moved["kernels"][0] if under else None
    of_most = 100 * most["under_ns"] / most["kernel_ns"] if most and most["kernel_ns"] else 0.0
    headline = f"Pages of managed memory move for {time(alone)} while no kernel runs, as the host touches them."
    if most:
        part = f"{in_percent(of_most)} of its time ({time(under)})"
        headline = f"{headlines.short(most['name'])}: pages of managed memory move during {part}."
    sentences = []
    if most:
        part = significant(100 * under / kernels, 2)
        sentences.append(
            f"Pages move during {part} % of the kernels' time ({time_three_digits(kernels)}), most in"
            f" {kernel_words(most['name'])}: {_moved(most)}."
        )
    if alone:
        sentences.append(f"While nothing else runs, they move for {time_three_digits(alone)} as the host touches them.")
    value = under if under else alone
    key = "under_migrations_ns" if under else "exposed_migrations_ns"
    finding = finding_of(
        document,
        key="migrations",
        quantity="migrations of managed memory",
        headline=headline,
        value=value,
        unit="ns",
        expression=_over_devices(key),
        sentence=" ".join(sentences),
        suggestion=suggestions.MIGRATIONS,
    )
    return [finding]


def _moved(row: Row) -> str:
    """Return how many migrations of a kernel or of the host there are, and what they move, in words."""
    size = "" if row["bytes"] is None else f" of {quantity(row['bytes'], 'bytes')}"
    return f"{row['migrations']:,} migration{'s' * (row['migrations'] != 1)}{size}"
