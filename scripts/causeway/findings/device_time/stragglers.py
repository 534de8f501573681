"""Findings on stragglers: which rank the others wait for, for how long, and why; or that the network is slow."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from causeway.core.formatting import first_of, name_in_sentence, significant, time, time_three_digits
from causeway.core.queries import in_document, value_at, within
from causeway.core.vocabulary import INCONCLUSIVE, MIXED, NETWORK, STRAGGLER, SUPPORTED
from causeway.findings import headlines, suggestions
from causeway.findings.headlines import in_percent
from causeway.findings.record import Effect, Evidence, Finding, Worth, link_to, made_from

BY_CHANCE = 0.01
"""A rank is last more often than by chance where that is less probable than this, as where it is named as late."""
FEW = 100
"""Below so many collectives three, as often as a rank that is named must be late, are more than the 3 % that would do:
they are few to say that a rank is rarely late.
"""
UNSIZED = (
    " Message sizes are not recorded: calls at one position of the sequence, or of one launch shape, are compared."
)


@made_from("stragglers")
def straggler_findings(document: Mapping) -> list[Finding]:
    """Return the findings of one dataset's `stragglers.json`: per communicator late ranks, the rank for which most of
    the waiting is, also where it is not often late, and slow transfers; or that none was found.
    """
    found = []
    for index, group in enumerate(document["groups"]):
        if group["verdict"] in (STRAGGLER, MIXED):
            found += [_late_together(document, index, at) for at in range(len(group.get("late_together", ())))]
            found += [_late_rank(document, index, position) for position in _late_alone(group)]
        if group["verdict"] in (NETWORK, MIXED):
            found.append(_slow_network(document, index))
        waited_for = _waited_for(group)
        if waited_for is not None:
            found.append(_waited_for_rank(document, index, waited_for))
        elif group["verdict"] not in (STRAGGLER, NETWORK, MIXED):
            found.append(_no_straggler(document, index))
    return _counted_once(document, found)


def _counted_once(document: Mapping, findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with what one rank, or the network, costs in several communicators counted once: the time that is
    waited in one may be the same as in another, and one replay takes both away. The largest stands in front, and the
    others behind it, without a saving of their own.
    """
    largest: dict[tuple, Finding] = {}
    for one in findings:
        known = largest.get(_whose(one))
        if known is None or (one.recoverable_ns or 0) > (known.recoverable_ns or 0):
            largest[_whose(one)] = one
    found = []
    for one in findings:
        main = largest[_whose(one)]
        if one is main or one.verdict != SUPPORTED:
            found.append(one)
            continue
        group = document["groups"][int(main.key.partition("/")[0].removeprefix("c"))]
        said = f" That may be the same time as in the collectives{_of_communicator(group)}, and is not added to it."
        alone = {"recoverable_ns": None, "recoverable_query": None, "undone_by": None}
        found.append(replace(one, sentence=f"{one.sentence}{said}", explains=main.id, **alone))
    return found


def _whose(finding: Finding) -> tuple:
    """Return whose loss a finding is about: of a rank, of several that are late together, or of the network."""
    return finding.subject, finding.undone_by, finding.verdict == SUPPORTED


def _finding(document: Mapping, index: int, *, key: str, path: tuple, value: int, **facts: object) -> Finding:
    """Return a finding on a communicator, by its index in the document: a time in ns at a path below it, which is also
    what can be saved at most, unless `facts` say otherwise.
    """
    name = f"{document['dataset']}/stragglers.json"
    query = in_document(name, "groups", index, *path, kind="integer")
    is_supported = facts["verdict"] == SUPPORTED
    return Finding(
        dataset=document["dataset"],
        kind="straggler",
        key=f"c{index}/{key}",
        evidence=Evidence(table=name, query=query, value=value),
        effect=Effect(value=value, unit="ns"),
        n=document["groups"][index]["collectives"],
        link=link_to(document["dataset"], "stragglers"),
        worth=Worth(ns=value) if is_supported else None,
        **({"recoverable_ns": value, "recoverable_query": query} if is_supported else {}) | facts,
    )


def _of_communicator(group: Mapping) -> str:
    if group["communicator"] is None:
        return f" of sequence {group['sequence']} (by device and stream)" if group.get("sequence") else ""
    return f" of communicator {name_in_sentence(group['communicator'])}"


def _late_alone(group: Mapping) -> list[int]:
    """Return the positions of late ranks that cost time alone: of ranks that are late together, those that are last in
    half of these collectives.
    """
    of_several = {rank: row["collectives"] for row in group.get("late_together", ()) for rank in row["ranks"]}
    return [
        position
        for position, rank in enumerate(group["ranks"])
        if rank["pattern"] != "none" and 2 * rank["last_collectives"] >= of_several.get(rank["rank"], 0)
    ]


def _late_together(document: Mapping, index: int, at: int) -> Finding:
    """Return the finding on ranks that are late in the same collectives, by their index in the document.

    Without them a collective begins as soon as the last of the others arrives, and the run ends so much earlier on all
    ranks.
    """
    group = document["groups"][index]
    row = group["late_together"][at]
    ranks = first_of(row["ranks"])
    waited = row["waiting_for_them_ns"]
    latest = max(
        (rank for rank in group["ranks"] if rank["rank"] in row["ranks"]), key=lambda rank: rank["waiting_for_it_ns"]
    )
    why = latest.get("why")
    because = f". Rank {latest['rank']} is late{_because(why)}" if why else ""
    saved = value_at("groups", index, "late_together", at, "together_ns", kind="integer")
    count = value_at("groups", index, "n_ranks", kind="integer")
    return _finding(
        document,
        index,
        key=f"together{at}",
        path=("late_together", at, "waiting_for_them_ns"),
        value=waited,
        subject=f"ranks {ranks}",
        quantity="time that other ranks wait",
        headline=headlines.of_late_rank(f"ranks {ranks}", waited, "together"),
        sentence=(
            f"Ranks {ranks} are late together beyond the threshold in {row['collectives']:,} of"
            f" {group['collectives']:,} collectives{_of_communicator(group)}; the others wait"
            f" {time_three_digits(waited)} for them in all"
            f"{because}. Were none of them late, each of the"
            f" {group['n_ranks']} ranks would save up to {time_three_digits(row['together_ns'])}."
        ),
        recoverable_ns=row["together_ns"] * group["n_ranks"],
        recoverable_query=within(f"{document['dataset']}/stragglers.json", f"({saved}) * ({count})"),
        verdict=SUPPORTED,
        suggestion=(
            "Look at what these ranks share and the others do not: node, power cap, cooling, other processes, part of"
            " the work."
        ),
    )


def _late_rank(document: Mapping, index: int, position: int) -> Finding:
    """Return the finding on a late rank, by its position in the group.

    Without it a collective begins as soon as the next rank arrives, and the run ends so much earlier on all ranks, the
    late one among them.
    """
    group = document["groups"][index]
    rank = group["ranks"][position]
    waited = rank["waiting_for_it_ns"]
    ranks = group["n_ranks"]
    why = rank.get("why")
    return _finding(
        document,
        index,
        key=f"rank{rank['rank']}",
        path=("ranks", position, "waiting_for_it_ns"),
        value=waited,
        subject=f"rank {rank['rank']}",
        quantity="time that other ranks wait",
        headline=headlines.of_late_rank(f"rank {rank['rank']}", waited, why["cause"] if why else None),
        sentence=(
            f"Rank {rank['rank']} is last in {rank['last_collectives']:,} of {group['collectives']:,}"
            f" collectives{_of_communicator(group)}, and late beyond the threshold in {rank['collectives']:,}; the"
            f" others wait {time_three_digits(waited)} for it in all{_because(why) if why else ''}. Were it never late,"
            f" each of the {ranks} ranks would save up to {time_three_digits(rank['alone_ns'])}."
        ),
        **_saved_without(document, index, position),
        verdict=SUPPORTED,
        undone_by="no_straggler",
        suggestion=suggestions.LATE.get(why["cause"] if why else None, suggestions.LATE_UNKNOWN),
    )


def _waited_for(group: Mapping) -> int | None:
    """Return the position of the rank for which most of the waiting is, where it is not named as late."""
    for position, rank in enumerate(group["ranks"]):
        if rank["rank"] == group.get("waited_for") and rank["pattern"] == "none":
            return position
    return None


def _waited_for_rank(document: Mapping, index: int, position: int) -> Finding:
    """Return the finding on the rank for which most of the waiting is, by its position in the group: what that costs
    was counted, whether the rank is often late is not shown.
    """
    group = document["groups"][index]
    rank = group["ranks"][position]
    last = f"{rank['last_collectives']:,} of {group['collectives']:,}"
    waited = rank["waiting_for_it_ns"]
    share = 100 * waited / group["waiting_ns"]
    is_few = group["collectives"] < FEW
    by_chance = f"{significant(100 * rank['by_chance'], 2)} %"
    if rank["by_chance"] <= BY_CHANCE:
        often = (
            f"it is late by more than {time_three_digits(group['threshold_ns'])} in too few of them to be often late"
        )
    elif is_few:
        often = (
            f"so few collectives do not show that it is often late: by chance some rank is last as often in {by_chance}"
        )
    else:
        often = "it is last no more often than by chance, and few long waits make up most"
    why = rank.get("why")
    return _finding(
        document,
        index,
        key=f"rank{rank['rank']}",
        path=("ranks", position, "waiting_for_it_ns"),
        value=waited,
        subject=f"rank {rank['rank']}",
        quantity="time that other ranks wait",
        headline=(
            f"Other ranks wait {time(waited)} for rank {rank['rank']}, {in_percent(share)} of all waiting: last in"
            f" {last}{', which are few' if is_few else ''}."
        ),
        sentence=(
            f"Ranks wait {time_three_digits(group['waiting_ns'])} for each other in {group['collectives']:,}"
            f" collectives{_of_communicator(group)}, {time_three_digits(waited)} ({significant(share, 2)} %) of it for"
            f" rank {rank['rank']}, which is last in {last}, by up to {time_three_digits(rank['latest_ns'])}"
            f"{_because(why) if why else ''}; {often}. Were it never late, each of the {group['n_ranks']} ranks would"
            f" save up to {time_three_digits(rank['alone_ns'])}."
        ),
        **_saved_without(document, index, position),
        verdict=SUPPORTED,
        undone_by="no_straggler",
        part_of="orchestration" if why and why["cause"] == "host" else None,
        suggestion=suggestions.LATE.get(why["cause"] if why else None, suggestions.LATE_UNKNOWN),
    )


def _saved_without(document: Mapping, index: int, position: int) -> dict:
    """Return what could be saved at most without a late rank, by its position in the group, and its query: a collective
    begins as soon as the next rank arrives, and the run ends so much earlier on all ranks.
    """
    group = document["groups"][index]
    alone = value_at("groups", index, "ranks", position, "alone_ns", kind="integer")
    count = value_at("groups", index, "n_ranks", kind="integer")
    return {
        "recoverable_ns": group["ranks"][position]["alone_ns"] * group["n_ranks"],
        "recoverable_query": within(f"{document['dataset']}/stragglers.json", f"({alone}) * ({count})"),
    }


def _because(why: Mapping) -> str:
    """Return why a rank is late, as the end of a sentence."""
    if why["cause"] == "host":
        return ", because its device is idle for longer: it is launched late"
    if why["cause"] == "copies":
        return ", because its device copies for longer"
    if why["cause"] == "other_ranks":
        return ", because it waits for ranks of another communicator"
    words = ", because its kernels run for longer"
    if why["kernels"]:
        words += f", most of all {name_in_sentence(why['kernels'][0]['kernel'])}"
    if why["clock"] and why["clock"]["slower"]:
        words += "; its clock is lower"
    return words


def _slow_network(document: Mapping, index: int) -> Finding:
    group = document["groups"][index]
    excess = group["excess_transfer_ns"]
    return _finding(
        document,
        index,
        key="network",
        path=("excess_transfer_ns",),
        value=excess,
        subject=document["dataset"],
        quantity="time of slow transfers",
        headline=f"Slow network transfers cost {group['n_ranks']} ranks {time(excess)}: all arrive together.",
        sentence=(
            f"Slow transfers cost {time_three_digits(excess)} over {group['n_ranks']} ranks in"
            f" {group['collectives']:,} collectives{_of_communicator(group)}: all ranks arrive together."
            f"{'' if group['sized'] else UNSIZED}"
        ),
        verdict=SUPPORTED,
        suggestion=(
            "Check links and transport (NCCL or RCCL debug output, topology), other jobs on the network, and message"
            " sizes."
        ),
        undone_by="collectives_at_best_bandwidth",
    )


def _no_straggler(document: Mapping, index: int) -> Finding:
    """Return that no rank is late often; a bound only where no lateness that was seen, however rare, exceeds it."""
    group = document["groups"][index]
    threshold = group["threshold_ns"]
    latest = group.get("latest_ns", 0)
    is_bound = latest <= threshold
    seen = (
        f"lateness beyond {time_three_digits(threshold)} would have been seen, had it been often"
        if is_bound
        else f"the largest lateness, {time_three_digits(latest)}, is too rare to be that of a rank"
    )
    return _finding(
        document,
        index,
        key="none",
        path=("threshold_ns" if is_bound else "latest_ns",),
        value=threshold if is_bound else latest,
        subject=document["dataset"],
        quantity="lateness that would have been seen" if is_bound else "largest lateness",
        headline=(
            f"None of {group['n_ranks']} ranks is often late by more than {time(threshold)}."
            if is_bound
            else f"None of {group['n_ranks']} ranks is often late; the largest lateness is {time(latest)}."
        ),
        sentence=(
            f"No rank stands out as often late in {group['collectives']:,} collectives{_of_communicator(group)} on"
            f" {group['n_ranks']} ranks: {seen}."
        ),
        verdict=INCONCLUSIVE,
    )
