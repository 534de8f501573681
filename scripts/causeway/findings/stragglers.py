"""Findings on stragglers: which rank the others wait for, for how long, and why; or that the network is slow."""

from collections.abc import Mapping

from causeway.findings import suggestions
from causeway.findings.efficiency import seconds
from causeway.findings.record import evidence, finding, link_to, shortened
from causeway.queries import in_document

SUPPORTED = ("straggler", "network", "mixed")


def of_stragglers(document: Mapping) -> list[dict]:
    """Return the findings of one dataset's `stragglers.json`: per communicator late ranks and slow transfers, or none."""
    found = []
    for number, group in enumerate(document["groups"]):
        late = [(place, rank) for place, rank in enumerate(group["ranks"]) if rank["pattern"] != "none"]
        if group["verdict"] in ("straggler", "mixed"):
            found += [_late(document, number, group, place, rank) for place, rank in late]
        if group["verdict"] in ("network", "mixed"):
            found.append(_network(document, number, group))
        if group["verdict"] not in SUPPORTED:
            found.append(_nobody(document, number, group))
    return found


def _made(document: Mapping, number: int, group: Mapping, what: str, path: tuple, value: int, **facts: object) -> dict:
    name = f"{document['dataset']}/stragglers.json"
    query = in_document(name, "groups", number, *path, kind="integer")
    saved = {"recoverable_ns": value, "recoverable_query": query} if facts["verdict"] == "supported" else {}
    return finding(
        document["dataset"],
        None,
        "dataset",
        "straggler",
        f"c{number}/{what}",
        evidence=evidence(name, query, value),
        effect={"value": value, "low": None, "high": None, "unit": "ns"},
        n=group["collectives"],
        link=link_to(document["dataset"], "stragglers"),
        **saved,
        **facts,
    )


def _where(group: Mapping) -> str:
    return "" if group["communicator"] is None else f" of communicator {shortened(group['communicator'])}"


def _late(document: Mapping, number: int, group: Mapping, place: int, rank: Mapping) -> dict:
    waited = rank["waiting_for_it_ns"]
    sentence = f"Rank {rank['rank']} is late in {rank['collectives']:,} of {group['collectives']:,} collectives{_where(group)}"
    sentence += f"; the others wait {seconds(waited)} for it in all"
    why = rank.get("why")
    if why and why["cause"] == "host":
        sentence += ", because its device is idle for longer: it is launched late"
    elif why and why["cause"] == "copies":
        sentence += ", because its device copies for longer"
    elif why:
        slow = next(iter(why["kernels"]), None)
        sentence += ", because its kernels run for longer"
        sentence += f", most of all {shortened(slow['kernel'])}" if slow else ""
        sentence += "; its clock is lower" if why["clock"] and why["clock"]["slower"] else ""
    facts = {"sentence": f"{sentence}.", "verdict": "supported"}
    facts["suggestion"] = suggestions.LATE.get(why["cause"], suggestions.LATE_UNKNOWN) if why else suggestions.LATE_UNKNOWN
    return _made(document, number, group, f"rank{rank['rank']}", ("ranks", place, "waiting_for_it_ns"), waited, **facts)


def _network(document: Mapping, number: int, group: Mapping) -> dict:
    excess = group["excess_transfer_ns"]
    sentence = f"Slow transfers cost {seconds(excess)} over {group['n_ranks']} ranks in {group['collectives']:,} collectives{_where(group)}"
    facts = {"sentence": f"{sentence}: all ranks arrive together.", "verdict": "supported", "suggestion": suggestions.NETWORK}
    return _made(document, number, group, "network", ("excess_transfer_ns",), excess, **facts)


def _nobody(document: Mapping, number: int, group: Mapping) -> dict:
    sentence = f"No rank stands out as late in {group['collectives']:,} collectives{_where(group)} on {group['n_ranks']} ranks: "
    sentence += f"lateness beyond {seconds(group['threshold_ns'])} would have been seen."
    return _made(document, number, group, "none", ("threshold_ns",), group["threshold_ns"], sentence=sentence, verdict="inconclusive")
