"""What an export holds and allows, by reading it into a temporary folder; nothing is analysed.

What an export allows, but is too short for: each analysis with what it needs, taken from where the analysis itself
decides.
"""

import contextlib
import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.command_line.exports_found import FoundExport, rank_of
from causeway.command_line.table_targets import table_targets
from causeway.core.formatting import time
from causeway.core.installation import keep_pandas_out
from causeway.core.tables import open_table, read_table
from causeway.inputs.quality import compared_documents, same_recordings
from causeway.inputs.recorded_time import RecordedTime, recordings_of
from causeway.numeric.effective_size import REFUSED_BELOW
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.normalise import normalise
from causeway.readers.report_conversion import convert_report, converted_export
from causeway.readers.report_kinds import report_kind

RANKS_FROM = {
    "sheet": "as the file's name says",
    "export": "as the export says",
    "position": "assumed; a sheet can say another",
}
"""Who says which ranks an export has, by the word in its capabilities."""
MOST_RANKS = 8
"""Ranks of one export that are listed."""


@dataclass(frozen=True)
class Described:
    """What is known of an export after it was read.

    Attributes
    ----------
    document : dict
        Its capabilities.
    lines : list of str
        What it holds, what it allows and what is amiss.
    recordings : mapping of int to RecordedTime
        What was recorded, by rank.
    """

    document: dict[str, Any]
    lines: list[str]
    recordings: Mapping[int, RecordedTime]


def describe_export(export: FoundExport, position: int) -> Described:
    """Return the capabilities of an export, and lines that say what it holds, what it allows and what is amiss.

    Parameters
    ----------
    export : FoundExport
        It is read whole, as the workflow does, which takes about a second for 20 MB of JSON; then its steps are found,
        to count them.
    position : int
        Of the export in its run, from 0.
    """
    with _errors_only(), tempfile.TemporaryDirectory(prefix="causeway-check-") as name:
        keep_pandas_out()
        folder = Path(name)
        path = export.path
        failure = None
        if report_kind(path):
            convert_report(path, folder / "converted", folder / "cache", source=path.name, tools={})
            path, failure = converted_export(path, folder / "converted")
        document = normalise(
            path,
            folder / "tables",
            export=export.path.name,
            source=export.path.name,
            rank=export.rank,
            position=position,
            targets=table_targets([export])[0],
            failure=failure,
        )
        refused = document["status"] == "refused"
        short = [] if refused else too_short(folder / "tables", document)
        span_ns = None if refused else _span_ns(folder / "tables", document)
        recordings = {} if refused else recordings_of(folder / "tables")
    return Described(document, _lines(export, document, span_ns, short), recordings)


def describe_run(dataset: str, exports: list[Described]) -> list[str]:
    """Return lines on what shows when the exports of a run are compared; none for a single export.

    Parameters
    ----------
    dataset : str
    exports : list of Described
        What only their tables show, such as a rank with few launches, the run itself finds.
    """
    documents = [described.document for described in exports]
    recordings = {described.document["export"]: described.recordings for described in exports}
    if len(documents) < 2:
        return []
    read = sum(document["status"] != "refused" for document in documents)
    notes = [_note(entry) for entry in compared_documents(documents, recordings) if entry["severity"] != "info"]
    return [
        clean_text(f"{dataset}: {read} of {len(documents)} exports read"),
        *(f"  {clean_text(note)}" for note in notes),
    ]


def perhaps_one_run(described: list[tuple[FoundExport, dict[str, Any]]]) -> list[str]:
    """Return a line for each folder whose exports state ranks that differ, but whose names make each a run of its own.

    Parameters
    ----------
    described : list of (FoundExport, dict)
        Exports with their capabilities.
    """
    folders: dict[tuple[Path, str], dict[str, list[int]]] = {}
    for export, document in described:
        if document["ranks_from"] == "export" and len(document["ranks"]) == 1:
            runs = folders.setdefault((export.path.parent, document["format"]), {})
            runs.setdefault(export.dataset, []).extend(document["ranks"])
    return [
        clean_text(
            f"{', '.join(runs)}: each is taken as a run, and they state different ranks; if they are the ranks of one"
            f" run, name them as one: NAME={folder}"
        )
        for (folder, _), runs in folders.items()
        if len(runs) > 1
        and len({*map(tuple, runs.values())}) == len(runs)
        and all(len(ranks) == 1 for ranks in runs.values())
    ]


def same_recordings_of_runs(described: list[tuple[FoundExport, dict[str, Any]]]) -> list[str]:
    """Return a line for each recording that stands in several runs.

    Parameters
    ----------
    described : list of (FoundExport, dict)
        Exports with their capabilities.
    """
    exports = {id(document): export for export, document in described}
    groups = [
        [exports[id(document)] for document in group]
        for group in same_recordings(capabilities for _, capabilities in described)
    ]
    return [
        clean_text(
            f"{', '.join(export.shown for export in group)}: hold the same recording, so that there are not"
            f" {len(group)} runs to compare"
        )
        for group in groups
        if len({export.dataset for export in group}) > 1
    ]


@contextlib.contextmanager
def _errors_only() -> Iterator[None]:
    """Keep the readers' own messages off the terminal; the answer has them in other words."""
    log = logging.getLogger("causeway")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


def _span_ns(tables: Path, document: dict[str, Any]) -> int | None:
    """Return the time from the first start to the last end, ns, as the page has it; None without times. Counters beside
    launches are left out: another run of the program may have recorded them, later.
    """
    from causeway.efficiency.device_time.measure import open_export

    opened = open_export(tables)
    if opened is not None:
        begins, ends = zip(*opened.windows.values(), strict=True)
        return int(max(ends) - min(begins))
    time = document["time"] or {}
    has_times = time.get("first_ns") is not None and time.get("last_ns") is not None
    return int(time["last_ns"] - time["first_ns"]) if has_times else None


def _lines(export: FoundExport, document: dict[str, Any], span_ns: int | None, short: list[str]) -> list[str]:
    """Return the lines, text from the export without what a terminal would act on; the first is the heading."""
    first, *rest = map(
        clean_text, [*_sentences(export, document, span_ns), *(f"short     {reason}" for reason in short)]
    )
    return [first, *(f"  {line}" for line in rest)]


def _counted(number: int, things: str) -> str:
    """Return a number of things, whose name is a plural.

    >>> _counted(1, "launches with counters"), _counted(1, "kernels"), _counted(2000, "calls")
    ('1 launch with counters', '1 kernel', '2,000 calls')
    """
    first, space, rest = things.partition(" ")
    single = first.removesuffix("es") if first.endswith("ches") else first.removesuffix("s")
    return f"{number:,} {single if number == 1 else first}{space}{rest}"


def _sentences(export: FoundExport, document: dict[str, Any], span_ns: int | None) -> Iterator[str]:
    yield f"{export.shown}: {_format(document)}, {document['status']}"
    if error := document["error"]:
        yield f"{error['found']}; expected {error['expected']}. {error['advice']}"
    if document["status"] == "refused":
        return
    yield f"run       {export.dataset}, {_ranks(export, document)}"
    names = {"counters": "rows" if document["kind"] == "table" else "launches with counters"}
    rows = ", ".join(_counted(count, names.get(table, table)) for table, count in document["tables"].items())
    yield f"holds     {rows}"
    if span_ns is not None:
        span = f"{span_ns / 1e9:.3f} s" if span_ns >= 1e8 else time(span_ns)
        yield f"span      {span}"
    allowed = [name for name, entry in document["analyses"].items() if entry["possible"]]
    yield f"allows    {', '.join(allowed) or 'no analysis'}"
    for name, entry in document["analyses"].items():
        if not entry["possible"]:
            yield f"not       {name}: {entry['why']}"
    yield from (_note(entry) for entry in document["issues"] if entry["severity"] != "info")
    minor = [entry["kind"].replace("_", " ") for entry in document["issues"] if entry["severity"] == "info"]
    if minor:
        yield f"info      {', '.join(minor)}; in full in the data quality of a run's page"


def _format(document: dict[str, Any]) -> str:
    """Return the format of an export with its version, which may name it already."""
    word = "unknown format" if document["format"] == "auto" else str(document["format"])
    version = document["format_version"] or word
    return version if word in version or version.startswith("rocprof") else f"{word}, {version}"


def _note(entry: dict[str, Any]) -> str:
    """Return an issue of the inputs as the report has it, with the number of cases."""
    often = f" ({entry['count']:,} ×)" if entry["count"] > 1 else ""
    return f"note      {entry['detail']}{often}"


def _ranks(export: FoundExport, document: dict[str, Any]) -> str:
    """Return the ranks of an export, and who says so."""
    ranks = document["ranks"]
    if not ranks:
        return "no rank"
    rest = " ..." if len(ranks) > MOST_RANKS else ""
    numbers = f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks[:MOST_RANKS]))}{rest}"
    source = document["ranks_from"]
    if source == "sheet" and rank_of(export.path, "") is None:  # of a Kineto trace, whose head was looked at
        source = "export"
    return f"{numbers} ({RANKS_FROM[source]})"


def too_short(tables: Path, document: dict[str, Any]) -> list[str]:
    """Return a sentence for each analysis that the export allows, but is too short for.

    What several exports of a run have together is not known here: a rank alone is judged.

    Parameters
    ----------
    tables : Path
        Folder of the export's tables.
    document : dict
        Its capabilities; the export was not refused.
    """
    parts: list[Callable[[Path, dict[str, Any]], list[str]]] = [_causes]
    if document["kind"] == "trace" and document["analyses"]["time_line"]["possible"]:
        parts += [_steps, _collectives, _critical_path]
    return [sentence for part in parts for sentence in part(tables, document)]


def _causes(tables: Path, document: dict[str, Any]) -> list[str]:
    """Return whether no kernel, or only some, have enough launches."""
    name = next((name for name in ("launches", "counters") if document["tables"].get(name)), None)
    if name is None or not document["analyses"]["causes"]["possible"]:
        return []
    launched = launches_by_kernel(tables, name)
    enough = [count for count in launched if count >= REFUSED_BELOW]
    needed = f"a search needs {REFUSED_BELOW:.0f} launches of a kernel, more where successive ones resemble each other"
    if not enough:
        return [f"causes: the most launches of one kernel are {max(launched):,}; {needed}"]
    if len(enough) == len(launched):
        return []
    share = 100 * sum(enough) / sum(launched)
    return [
        f"causes: {len(enough):,} of {len(launched):,} kernels, {share:.0f} % of the launches, have enough; {needed}"
    ]


def _steps(tables: Path, _: dict[str, Any]) -> list[str]:
    """Return whether the rank with the most steps has too few for one of them to be called slow."""
    from causeway.efficiency.steps.find_steps import steps_after_warm_up
    from causeway.efficiency.steps.step_causes import MIN_STEPS

    most = steps_after_warm_up(tables)
    if most >= MIN_STEPS:
        return []
    told = f"{most} step{'' if most == 1 else 's'} after the warm-up"
    return [f"slow steps: {told} can be told; a step is called slow among {MIN_STEPS} or more"]


def _collectives(tables: Path, _: dict[str, Any]) -> list[str]:
    """Return whether an export with collectives has too few of them to align clocks."""
    from causeway.efficiency.ranks.clock_alignment import FEWEST as FEWEST_FOR_SHIFT
    from causeway.efficiency.ranks.clock_alignment import FEWEST_FOR_DRIFT
    from causeway.efficiency.ranks.rank_collectives import collectives_of

    most = max(map(len, collectives_of(tables).values()), default=0)
    needs = {"shift of clocks": FEWEST_FOR_SHIFT, "drift": FEWEST_FOR_DRIFT}
    return [
        f"{name}: the most collectives of one rank are {most}; {needed} are needed"
        for name, needed in needs.items()
        if 0 < most < needed
    ]


def _critical_path(_: Path, document: dict[str, Any]) -> list[str]:
    """Return whether there are fewer launches than a latency is taken from."""
    from causeway.waiting.graph.link_ranks import DEFAULT_START_UP_NS, LEAST_STARTS

    launches = document["tables"]["launches"]
    if launches >= LEAST_STARTS:
        return []
    return [
        f"critical path: {launches} launches; the latency of a start is measured from {LEAST_STARTS}, "
        f"below {DEFAULT_START_UP_NS / 1000:.0f} µs are taken"
    ]


def launches_by_kernel(tables: Path, name: str) -> list[int]:
    """Return the number of launches of each kernel that has any, by number of the kernel.

    Parameters
    ----------
    tables : Path
        Folder of an export's tables.
    name : {"launches", "counters"}
    """
    kernel_of = read_table(tables / "configurations.parquet", "configurations", ["configuration", "kernel"])
    launches: Counter[int] = Counter()
    with open_table(tables / f"{name}.parquet", name) as file:
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, columns=["configuration"])
            launches.update({row["values"]: row["counts"] for row in rows["configuration"].value_counts().to_pylist()})
    kernels: Counter[int] = Counter()
    for row in kernel_of.to_pylist():
        kernels[row["kernel"]] += launches[row["configuration"]]
    return [kernels[kernel] for kernel in sorted(kernels) if kernels[kernel]]
