"""Words of the work that a device does: what fills its time, what limits a kernel, what varies and why."""

from collections.abc import Sequence

from causeway.core.feature_registry import record_of
from causeway.core.formatting import count, counted, elided, quantity, significant, time
from causeway.core.names.kernel_words import kernel_words
from causeway.core.names.work_classes import OTHER, WHOLE_GRAPHS
from causeway.core.schemas import Row
from causeway.findings.first_screen.counted_work import CounterFact, PeakFact
from causeway.findings.first_screen.run_facts import MOST_OF_RUN, RunFact
from causeway.findings.first_screen.table_rows import ApartFact, LargestFact, SettingsFact
from causeway.findings.first_screen.words.run_words import LONGEST_DETAIL, of_device, percent
from causeway.findings.first_screen.work import DriftFact, TableCause, VariationFact, WorkFact


def of_work(classes: Sequence[WorkFact], kernels: Sequence[WorkFact]) -> str:
    """Return what fills the kernels' time: classes from a fiftieth on, where their work is known, then the kernel with
    most and what of a device it fills.
    """
    total = sum(fact.total_ns for fact in classes)
    classified = [fact for fact in classes if fact.name != OTHER]
    is_known = sum(fact.total_ns for fact in classified) >= MOST_OF_RUN * total / 2
    graphs = [fact for fact in classes if fact.name == WHOLE_GRAPHS]
    ranked = classes if is_known else sorted([*kernels, *graphs], key=lambda fact: -fact.total_ns)
    shown = [fact for fact in ranked if fact.total_ns >= 0.02 * total][:4]
    parts = [f"{fact.name} {percent(fact.total_ns / total)}" for fact in shown]
    first = next((fact for fact in kernels if fact.total_ns <= total), kernels[0] if kernels else None)
    if first is None or 2 * first.total_ns < 0.1 * total:
        return f"{time(total)} of kernels: {', '.join(parts)}."
    filled = ""
    if first.filled is not None and first.filled < 0.95:
        filled = f" (its blocks fill {percent(first.filled)} of a device)"
    launches = f"in {counted(first.launches, 'launch')}{filled}"
    if shown and shown[0] == first:
        return f"{time(total)} of kernels: {', '.join([f'{parts[0]} {launches}', *parts[1:]])}."
    most = f"{first.name}: {percent(first.total_ns / total)} {launches}"
    which = "one kernel" if first.kernels == 1 else f"{count(first.kernels)} kernels of one name"
    return f"{time(total)} of kernels: {', '.join(parts)}. Most in {which}, {most}."


MOST_SETTINGS = 3
"""Columns of a sweep that are told."""
BOUND = 0.6
"""Share of a device's peak from which a kernel is bound by it, as NVIDIA's rules for Nsight Compute have it."""
LITTLE_ALLOWED = 0.5
"""Occupancy that launches can have at most, below which that is said to limit a kernel that nothing binds."""


def of_peak(fact: PeakFact) -> str:
    """Return what a kernel reaches of its device."""
    shares = {"compute": fact.compute, "memory": fact.memory}
    measured = {name: share for name, share in shares.items() if share is not None}
    parts = [f"{name} {percent(share)} of peak" for name, share in measured.items()]
    parts += [f"occupancy {percent(fact.occupancy)}"] if fact.occupancy is not None else []
    level = _level(fact)
    bound = [name for name, share in measured.items() if share >= BOUND or (name == "memory" and level)]
    why = "small launches or latency"
    allowed = 1.0 if fact.allowed is None else fact.allowed
    reached = fact.occupancy is None or 2 * fact.occupancy >= allowed
    if reached and allowed < LITTLE_ALLOWED and fact.limited_by is not None:
        allow = "allows" if fact.limited_by == "shared memory" else "allow"
        why = f"its {fact.limited_by} {allow} {percent(allowed)} of the warps at once"
    verdict = f"; bound by neither: {why}" if len(measured) > 1 else ""
    verdict = f"; bound by {' and '.join(bound)}{level}" if bound else verdict
    weight = time(fact.total_ns) if fact.total_ns else counted(fact.launches, "launch")
    return f"{fact.kernel} ({weight}): {', '.join(parts)}{verdict}."


def _level(fact: PeakFact) -> str:
    """Return the level of memory that binds a kernel, where that is a cache and its DRAM is half idle beside it: also
    where all of memory counts less, as what Nsight Compute takes for it may leave out the first level.
    """
    dram = fact.levels.get("DRAM", fact.memory or 0.0)
    level = max(fact.levels, key=lambda name: fact.levels[name], default="DRAM")
    share = fact.levels.get(level, 0.0)
    if level == "DRAM" or share < BOUND or 2 * dram > share:
        return ""
    return f", of it {level} at {percent(share)}, with DRAM at {percent(dram)}: uncoalesced or repeated accesses"


def of_counter(fact: CounterFact) -> str:
    """Return what a counter adds up to, and where most of it is."""
    total = quantity(fact.total, fact.unit)
    return f"{record_of(fact.name).label}: {total} in all, {percent(fact.share)} in {kernel_words(fact.kernel)}."


def of_means(means: Sequence[tuple[str, str, float]]) -> str:
    """Return the means of counters that do not add up."""
    in_signs = [(record_of(name).label, unit.replace("percent", "%"), mean) for name, unit, mean in means]
    each = ", ".join(f"{label} {quantity(mean, unit)}" for label, unit, mean in in_signs)
    return f"On average: {each}."


def _cause(feature: str, level: str | None, change_percent: float | None) -> str:
    """Return a cause, and what it changes of the mean."""
    change = ""
    if change_percent is not None and abs(change_percent) >= 1:
        change = f" ({_signed(change_percent)} of the mean)"
    return f"{record_of(feature).label}{f' = {level}' if level else ''}{change}"


def of_cause(cause: TableCause, target: str) -> str:
    """Return what a supported cause of a table's column explains, and how it changes the mean, else the spread."""
    row = cause.row
    name = record_of(row["feature"]).label
    unless = f", unless it is computed from {target}" if row["determines_time"] else ""
    where = "from low to high values"
    if row["level"]:
        name, where = f"{name} = {row['level']}", "there"
    of = f" of {kernel_words(cause.kernel)}" if cause.kernel else ""
    change = row["mean_change_percent"] or 0.0
    how = f": {where} {_signed(change)} of the mean" if abs(change) >= 1 else ""
    if not how and (row["spread_change_low"] or 0.0) > 0:
        how = f": {where} {_signed(row['spread_change_percent'])} of the spread; the mean stays"
    return f"{name} explains {percent(row['variance_percent'] / 100)} of the variance{of}{unless}{how}."


def _signed(change_percent: float) -> str:
    return f"{'+' if change_percent > 0 else '−'}{significant(abs(change_percent), 2)} %"


def of_no_cause(graphs: Sequence[Row], deviation: float | None) -> str:
    """Return that no column is a supported cause, by how much the rows deviate from their mean (a share of it), and
    what correlates with the measured value otherwise.
    """
    beyond = max(filter(None, (graph.get("beyond") for graph in graphs)), key=lambda goes: goes["share"], default=None)
    rows = count(max(graph["n_rows"] for graph in graphs))
    spread = f", which deviate from their mean by {percent(deviation)} on average" if deviation is not None else ""
    nothing = f"No column is a supported cause, in {rows} rows{spread}."
    if beyond is None:
        return nothing
    names = " and ".join(record_of(name).label for name in beyond["features"])
    what = f"{names} one row earlier correlates" if beyond["is_earlier"] else f"{names} together correlate"
    return f"{nothing} But {what} with it: {percent(beyond['share'])} of the variance."


def _cut(text: str) -> str:
    """Return what a table calls something, in a length that a line has room for."""
    return elided(text, LONGEST_DETAIL)


def of_apart(fact: ApartFact, target: str, unit: str) -> str:
    """Return which place of a table stands apart, by how much, and with which clock."""
    change = fact.mean / fact.others - 1 if fact.others else 0.0
    by = f" ({'+' if change > 0 else '−'}{percent(abs(change))})" if change else ""
    clock = ""
    if fact.clock is not None:
        name, there, elsewhere = fact.clock
        clock = f" There {_cut(name)} is {significant(there, 4)}, elsewhere {significant(elsewhere, 4)}."
    where = ", ".join(" ".join(_cut(text) for text in level) for level in fact.levels)
    return (
        f"{where}: mean {target} of {count(fact.rows)} rows {quantity(fact.mean, unit)},"
        f" {quantity(fact.others, unit)} in the others{by}. That is {percent(fact.share)} of the variance.{clock}"
    )


def of_settings(fact: SettingsFact, target: str, unit: str) -> str:
    """Return by which columns the rows of a table differ, and from which of their levels to which."""
    first, *others = fact.settings[:MOST_SETTINGS]
    ends = zip(first.medians, first.ends, strict=True)
    low, high = (f"{quantity(median, unit)} at {_cut(level)}" for median, level in ends)
    of = " of its logarithm" if fact.is_log else ""
    said = (
        f"{target} by {_cut(first.column)}: median {low}, {high}. That is {percent(first.share)} of the variance{of}."
    )
    for setting in others:
        least, most = (_cut(level) for level in setting.ends)
        more = f"{quantity(setting.above, unit)} more at {most} than at {least}"
        if fact.is_log:
            more = f"{significant(setting.above)} times as much at {most} as at {least}"
        said += f" Then by {_cut(setting.column)}: {more}, {percent(setting.share)}."
    return said


def of_largest(fact: LargestFact, unit: str) -> str:
    """Return the largest rows of a table, with where they were measured and their share of all."""
    column = [f"{_cut(fact.column)} ", *[""] * len(fact.rows)]
    rows = zip(fact.rows, column, strict=False)
    each = ", ".join(f"{quantity(value, unit)} at {of}{_cut(level)}" for (value, level), of in rows)
    are = "is" if len(fact.rows) == 1 else "are"
    return f"{counted(len(fact.rows), 'row')} of {count(fact.of)} {are} {percent(fact.share)} of all: {each}."


def of_leaked(columns: Sequence[str], target: str) -> str:
    """Return which columns are left out as they give the measured value, alone or with another one."""
    named = ", ".join(record_of(column).label for column in columns[:MOST_SETTINGS])
    more = f" and {len(columns) - MOST_SETTINGS} more" if len(columns) > MOST_SETTINGS else ""
    verb = "gives" if len(columns) == 1 else "give"
    return (
        f"{named}{more} {verb} nearly all of {target}, at most with one other column: computed from it, or its cause."
    )


def _clock(clock: tuple[str, float, float] | None) -> str:
    """Return which clock changes meanwhile."""
    if clock is None:
        return ""
    name, was, now = clock
    rates = f"{significant(was / 1e9)} to {significant(now / 1e9)} GHz"
    return f" Meanwhile {name.removesuffix('_hz').replace('_', ' ')} changes from {rates}."


def of_drift(fact: DriftFact, run: RunFact) -> str:
    """Return by how much all kernels are slower in the second half of a device's time, and the clock that falls."""
    of = of_device(fact.rank, fact.device, run) or (f"rank {fact.rank}" if run.ranks > 1 else "")
    also = f", the most of {fact.devices} such GPUs," if fact.devices > 1 else ""
    return (
        f"Kernels{of and f' of {of}'}{also} take {significant(fact.times)} times as long in the second half of the run"
        f" as in the first, nearly all of them: {time(fact.cost_ns)} more.{_clock(fact.clock)}"
    )


def of_variation(fact: VariationFact, run: RunFact) -> str:
    """Return how a kernel varies, the cause where one is supported, and the price; of a trend both ends."""
    kernel = kernel_words(fact.name)
    if (trend := fact.trend) is not None:
        since = f", at {time(trend.since_ns)}" if trend.since_ns is not None else ""
        how = f"a jump that stays{since}" if trend.is_jump else "a trend over the run"
        whose = "launches" if trend.rank is None or run.ranks < 2 else f"launches on rank {trend.rank} alone"
        of = (
            f"the first tenth of {whose}"
            if whose != "launches"
            else f"the first tenth of {count(fact.launches)} launches"
        )
        ends = f"{time(trend.begins_ns)} in {of}, {time(trend.ends_ns)} in the last"
        return f"{kernel}: {ends}: {how}, not noise.{_clock(trend.clock)}"
    low, middle, high = (time(value) for value in fact.quartiles_ns)
    shapes = f" of {count(fact.shapes)} shapes" if fact.shapes > 1 else ""
    half = f"half of {count(fact.launches)} launches{shapes} {low} to {high}"
    why = "no cause is supported"
    if fact.slower is not None:
        when, *means = fact.slower
        slower, others = map(time, means)
        why = f"{when} it takes {slower}, else {others}"
    elif fact.cause is not None:
        why = f"cause: {_cause(fact.cause, fact.level, fact.change_percent)}"
    each = " per GPU" if run.devices > 1 else ""
    price = f"{time(fact.cost_ns / run.devices)}{each} ({percent(run.share(fact.cost_ns))})"
    varies = f"{kernel}: median {middle}, {half}, longest {time(fact.longest_ns)}. {why[0].upper()}{why[1:]}"
    return f"{varies}. Launches above their mean take {price} more."
