"""Findings about inputs that could not be used, and about recordings whose times cannot be trusted."""

from collections.abc import Mapping, Sequence

from causeway.core.files.source_names import shown_sources
from causeway.core.formatting import counted, name_in_sentence, time_three_digits
from causeway.core.queries import in_document
from causeway.core.vocabulary import SUPPORTED
from causeway.findings.headlines import short
from causeway.findings.record import Evidence, Finding, link_to

RECORDING = {
    "late_stamps": (
        "{launches} stamped later than they ran: neither the time of steps nor idle time can be told.",
        "Record without graphs, or with another version of the profiler, to see steps and idle time; durations of"
        " kernels, and what belongs to a step by its calls, hold.",
    ),
    "unrecorded_steps": (
        "In {steps} steps nothing was recorded: neither idle time nor its reason can be told.",
        "Record fewer steps, or with larger buffers, until every step has its calls and kernels; what is recorded of"
        " the others holds.",
    ),
}
"""Issues of the recording that rule the time line out: headline and advice."""


def quality_findings(quality: Mapping, shown: Mapping[str, str] | None = None) -> list[Finding]:
    """Return one finding per export of a dataset's `quality.json` that could not be used, in the sheet's order.

    Parameters
    ----------
    quality : mapping
    shown : mapping of str to str or None
        What to call each source, by `shown_sources` over all datasets of the analysis; over this one alone by default.
    """
    dataset = quality["dataset"]
    document = f"{dataset}/quality.json"
    names = shown or shown_sources(export["source"] for export in quality["exports"])
    found = []
    for index, export in enumerate(quality["exports"]):
        if export["status"] == "read":
            continue
        error = export.get("error") or {}
        name = names[export["source"]]
        source = short(name)
        is_refused = export["status"] == "refused"
        why = f": {error['found']}. {error['advice']}" if error else "."
        degree = "could not be read and is in no result" if is_refused else "was read in part"
        found.append(
            Finding(
                dataset=dataset,
                kind="quality",
                key=export["export"],
                subject=source,
                quantity="inputs that were read",
                headline=f"{source} {degree if is_refused else 'was read only in part'}.",
                sentence=f"{name_in_sentence(name)} {degree}{why}",
                verdict=SUPPORTED,
                evidence=Evidence(
                    table=document,
                    query=in_document(document, "exports", index, "status", kind="text"),
                    value=export["status"],
                ),
                link=link_to(dataset, "quality"),
                suggestion=error.get("advice") or "See the data quality section for what was left out.",
            )
        )
    return found


def recording_findings(quality: Mapping, by_calls: Sequence[Mapping] = ()) -> list[Finding]:
    """Return the findings of one dataset's `quality.json` about faults of its recordings for which neither the time of
    steps nor idle time can be told, with what is known of the steps all the same.

    Parameters
    ----------
    quality : mapping
    by_calls : sequence of mapping
        `by_calls` of the dataset's `steps.json`.
    """
    dataset = quality["dataset"]
    document = f"{dataset}/quality.json"
    steps = sum(rank["steps"] for rank in by_calls)
    found = []
    for index, issue in enumerate(quality["issues"]):
        if issue["kind"] not in RECORDING:
            continue
        headline, advice = RECORDING[issue["kind"]]
        count = issue["count"]
        launches = "One launch is" if count == 1 else f"{count:,} launches are"
        of = f"{count:,} of {steps:,}" if steps else f"{count:,}"
        known = "".join(f" {_of_rank(rank, len(by_calls))}" for rank in by_calls)
        found.append(
            Finding(
                dataset=dataset,
                kind="recording",
                key="/".join(filter(None, (issue["kind"], issue["export"]))),
                subject=dataset,
                quantity="fault of the recording",
                headline=headline.format(launches=launches, steps=of),
                sentence=f"{issue['detail'][:1].upper()}{issue['detail'][1:]}.{known}",
                verdict=SUPPORTED,
                evidence=Evidence(
                    table=document,
                    query=in_document(document, "issues", index, "count", kind="integer"),
                    value=count,
                ),
                link=link_to(dataset, "quality"),
                suggestion=advice,
            )
        )
    return found


def _of_rank(known: Mapping, ranks: int) -> str:
    """Return what belongs to the steps of a rank by the calls, as a sentence."""
    whose = f" of rank {known['rank']}" if ranks > 1 else ""
    least, middle, most = known["launches"]
    shortest, usual, longest = known["kernel_ns"]
    if least == most:
        launches = f"each of {counted(known['steps'], 'step')}{whose} has {counted(most, 'launch')}"
    else:
        launches = (
            f"{counted(known['steps'], 'step')}{whose} have {least:,} to {most:,} launches, {middle:,} at the median"
        )
        launches += f", and {known['empty']:,} of them none" if known["empty"] else ""
    if not usual:
        return f"By the calls, {launches}; up to {time_three_digits(longest)} of kernels."
    times = [time_three_digits(one) for one in (shortest, usual, longest)]
    spread = "" if times[0] == times[2] else f" ({times[0]} to {times[2]})"
    return f"By the calls, {launches}; {times[1]} of kernels at the median{spread}."
