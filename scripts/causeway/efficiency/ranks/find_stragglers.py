"""What `find_stragglers` does: matched collectives on aligned clocks, late ranks and why, components of variance; over
MPI ranks, each of which reads some exports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.clock import Clock
from causeway.core.reduced import STRAGGLERS, has_time_line, why_not
from causeway.core.tables import SCHEMAS, folder_bytes, read_json, write_json, write_table
from causeway.efficiency.ranks import collectives, stragglers
from causeway.efficiency.ranks.clock_alignment import align_by_ends
from causeway.efficiency.ranks.exchanges import with_exchanges
from causeway.efficiency.ranks.lateness_causes import OwnWork
from causeway.efficiency.ranks.rank_collectives import RankCollectives, collectives_of
from causeway.efficiency.ranks.rank_roles import different_work, role_numbers, roles_of, work_of
from causeway.efficiency.ranks.variance_components import components
from causeway.events.event_blocks import first_recorded
from causeway.numeric.mpi import Ranks, merged

WAITS = "what is said of waits and late ranks holds for one communicator alone"


def find_stragglers(
    name: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    seed: int,
    out_json: str | Path,
    out_table: str | Path,
    *,
    runs: Mapping[str, str | None] | None = None,
    ranks: Ranks | None = None,
) -> None:
    """Write `stragglers.json` and `stragglers.parquet` of a dataset; for a reduced one whose filter rules stragglers
    out, the reason takes the place of the collectives.

    Every export is read by one rank: the results are the same, to the byte, on any number of ranks.

    Parameters
    ----------
    name : str
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    seed : int
        Of the resamples of the components of variance.
    out_json, out_table : path
    runs : mapping of str to str or None
        The repeat of the job by export, as in the sheet.
    ranks : Ranks or None
        The processes that share the work; None for this one alone. Rank 0 writes.

    Raises
    ------
    CausewayError
        On all ranks, if anything failed on one.
    """
    ranks = ranks or Ranks()
    given = [Path(folder) for folder in folders]
    filtered = ranks.of_first(lambda: why_not(given, STRAGGLERS))
    with ranks.together():
        document = read_json(clocks_file)
        assigned = [given[index] for index in ranks.share_of([folder_bytes(folder) for folder in given])]
        capabilities = {folder: read_json(folder / "capabilities.json") for folder in assigned}
        read = [] if filtered else assigned
        rows = {folder: collectives_of(folder) for folder in read if has_time_line(capabilities[folder])}
        work = {folder: work_of(folder) for folder in read}
        begins = {folder: first_recorded(folder, rows[folder]) for folder in rows}
    documents = merged(ranks.exchange(capabilities))
    used = {folder: documents[folder] for folder in given if documents[folder]["status"] != "refused"}
    folder_of = {rank: folder for folder, facts in used.items() for rank in facts["ranks"]}
    clocks = {rank: Clock.of(entry) for entry in document["exports"].values() for rank in entry["ranks"]}
    parts = ranks.collect((rows, work, begins))
    judged: list[_Judged] = []
    notes: list[str] = []
    role_of: dict[int, int] = {}
    with ranks.together():
        if parts is not None:
            every_rows, every_work, every_begin = (merged(part) for part in zip(*parts, strict=True))
            roles = roles_of(every_work[folder] for folder in given if folder in every_work)
            role_of = role_numbers(roles)
            in_order = [every_rows[folder] for folder in given if folder in every_rows]
            groups, notes = ([], [filtered]) if filtered else _matched(in_order, document, different_work(roles))
            begin_of = {rank: begin for of_export in every_begin.values() for rank, begin in of_export.items()}
            if document["method"] != "zero":  # else moments of different ranks are not comparable
                groups = [_recorded(group, clocks, begin_of, notes) for group in groups]
            judged = _judged(groups, clocks, role_of, notes)
    late, role_of = ranks.share(([(judgement.group, judgement.late) for judgement in judged], role_of))
    with ranks.together():
        own = [
            OwnWork(group, group.synchronising(), folder_of, chosen, role_of, assigned) if chosen else None
            for group, chosen in late
        ]
    works = ranks.collect(own)
    traced = [folder for folder, facts in used.items() if "launches" in facts["tables"]]
    nodes = {rank: documents[folder]["node"] for rank, folder in folder_of.items()}
    run_of = {rank: (runs or {}).get(folder.name) for rank, folder in folder_of.items()}
    variance = components(traced, clocks, nodes, seed, run_of, ranks=ranks)
    with ranks.together():
        if works is not None:
            for index, judgement in enumerate(judged):
                judgement.explain([part[index] for part in works], role_of)
            result = {
                "dataset": name,
                "groups": [judgement.verdict for judgement in judged],
                "notes": notes,
                "clocks": {key: document[key] for key in ("method", "residual_ns", "reason")},
                "variance": variance,
            }
            write_json(result, out_json, schema="stragglers")
            of_groups = [_table(judgement.group, judgement.times) for judgement in judged]
            table = pa.concat_tables([SCHEMAS["stragglers"].empty_table(), *of_groups])
            write_table(table, out_table, "stragglers", metadata={"dataset": name})


@dataclass
class _Judged:
    """A group of matched collectives with its times, the verdict on its ranks, and for each late rank in which
    collectives it is late; bool, shape (collectives,).
    """

    group: collectives.MatchedCollectives
    times: Mapping
    verdict: dict
    late: dict[int, np.ndarray]

    def explain(self, works: Sequence[OwnWork | None], role_of: Mapping[int, int]) -> None:
        """Say why ranks are late, from what each process has read."""
        whole, *others = works
        for other in others:
            if whole and other:
                whole.add(other)
        for entry in self.verdict["ranks"]:
            if whole and entry["rank"] in self.late and (why := whole.why(entry["rank"])):
                entry["why"] = why
            entry["role"] = role_of.get(entry["rank"])


def _matched(
    exports: Sequence[Mapping[int, RankCollectives]], document: Mapping, words: str | None
) -> tuple[list[collectives.MatchedCollectives], list[str]]:
    """Return the matched collectives, and notes on them; `document` is `clocks.json`, and `words` say that ranks do
    different work, if they do.
    """
    groups, notes = collectives.match(exports)
    groups, more = with_exchanges(groups, document)
    notes = [*notes, *more]
    return groups, notes if words is None else [*notes, f"{words}: each is held against its own role"]


def _recorded(
    group: collectives.MatchedCollectives, clocks: Mapping[int, Clock], begin_of: Mapping[int, int], notes: list[str]
) -> collectives.MatchedCollectives:
    """Return a group in which collectives that began before the recording of a rank, by more than they take themselves,
    do not count: the others wait for the start of that recording. `begin_of` has the begin of each rank's, ns, own
    clock; `notes` gets a sentence.
    """
    if not set(group.ranks) <= begin_of.keys():
        return group
    start = np.stack([clocks[rank].aligned(own) for rank, own in zip(group.ranks, group.start, strict=True)])
    begins = [int(clocks[rank].aligned(np.array([begin_of[rank]]))[0]) for rank in group.ranks]
    begins = np.minimum(begins, start.min(axis=1, initial=np.iinfo(np.int64).max))
    transfer = (group.end - group.start).min(axis=0)
    before = begins.max() - start.min(axis=0) > transfer
    if not before.any():
        return group
    notes.append(
        f"{_named(group)}: {int(before.sum()):,} of {before.size:,} collectives began before all ranks were recorded:"
        " what was waited for in them is the start of recordings"
    )
    return replace(group, unrecorded=before)


def _judged(
    groups: Sequence[collectives.MatchedCollectives],
    clocks: Mapping[int, Clock],
    role_of: Mapping[int, int],
    notes: list[str],
) -> list[_Judged]:
    """Return the groups with enough collectives; `notes` gets a sentence on each of the others."""
    judged = []
    for group in groups:
        if not group.synchronising().any():
            notes.append(f"{_named(group)}: no collective that all ranks leave together")
            continue
        members = max(group.members(index) for index in np.flatnonzero(group.synchronising()).tolist())
        if members > len(group.ranks):
            notes.append(
                f"{_named(group)}: {len(group.ranks)} of its {members} ranks were read: these are held against one"
                " another, and transfers may hold waits for the others"
            )
        if group.communicator is None and len(group.ranks) > 2:
            together = align_by_ends([group], {rank: str(rank) for rank in group.ranks})
            if together and not together["accepted"]:
                notes.append(f"{_named(group)}: {together['reason']}, so not all ranks may take part in each: {WAITS}")
        times = stragglers.analyse(group, clocks, role_of)
        verdict = stragglers.verdict_of(times, group)
        late = {}
        for index, entry in enumerate(verdict["ranks"]):
            if entry["pattern"] != "none":
                late[entry["rank"]] = times["held"][index]
            elif entry["rank"] == verdict["waited_for"]:
                late[entry["rank"]] = times["last"][index]
        judged.append(_Judged(group, times, verdict, late))
    return judged


def _named(group: collectives.MatchedCollectives) -> str:
    """Return what notes call a group."""
    if group.communicator is not None:
        return f"communicator {group.communicator}"
    return "unknown communicator" if group.sequence is None else f"unknown communicators, sequence {group.sequence}"


def _table(group: collectives.MatchedCollectives, times: Mapping) -> pa.Table:
    """Return the rows of a group's collectives in `stragglers.parquet`."""
    number = times["number"]
    size = group.bytes[number]
    columns = {
        "communicator": [group.communicator] * number.size,
        "collective": number,
        "name": [group.operations[index] for index in number.tolist()],
        "bytes": pa.array(size, mask=size < 0),
        "n_ranks": np.full(number.size, len(group.ranks)),
        "start_ns": times["start"],
        "skew_ns": times["skew"],
        "transfer_ns": times["transfer"],
        "waiting_ns": times["waiting"],
        "bus_gb_per_s": pa.array(times["bus_gb_per_s"], from_pandas=True),
        "straggler": pa.array(times["straggler"], mask=times["straggler"] < 0),
        "lateness_ns": times["lateness"],
        "verdict": times["verdict"].astype(str),
    }
    return pa.table(columns).cast(SCHEMAS["stragglers"])
