"""What `compare_runs` does: measure both sides, match, estimate, judge, and write it down.

What changes would save on each side, by replays of both, and what limits each run next.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa

from causeway.comparison.change_estimates import HALVES, REPEATS, UNMEASURED, Choices
from causeway.comparison.change_verdicts import Reason, compare_causes, read_causes
from causeway.comparison.distributions import (
    kernel_counters,
    kernel_effects,
    kernel_quantiles,
    other_shapes,
    settings_document,
)
from causeway.comparison.groups import compare_groups, configuration_pairs, lone_rows
from causeway.comparison.operator_changes import compare_operators
from causeway.comparison.over_time import Course, compare_efficiency, compare_steps, compare_times, decomposition
from causeway.comparison.runs.counter_means import counter_means
from causeway.comparison.runs.launch_inputs import has_messages, inputs_by_kernel
from causeway.comparison.runs.matching import Match, match_kernels, pairs_in
from causeway.comparison.runs.recordings import Shared, same_ranks, shared_by
from causeway.comparison.runs.run_totals import Run, measure
from causeway.comparison.runs.settings import any_unit, common_settings, common_time
from causeway.comparison.sides import Side
from causeway.core.errors import CausewayError, NotComparableError
from causeway.core.formatting import name_in_sentence
from causeway.core.logs import LOG
from causeway.core.tables import SCHEMAS, read_table, write_json, write_table
from causeway.core.vocabulary import EXACT, GONE, INCONCLUSIVE, MATCHES, NEW

ASSUMPTIONS = {
    HALVES: (
        "One run on each side: how much two runs of the same program differ was not measured. Intervals show the noise"
        " within the runs, and the noise floor is how much the change differs between the first and the second halves"
        f" of the runs, at least {100 * UNMEASURED:.0f} % (of variability {1000 * UNMEASURED:.0f} %, of efficiency"
        f" {100 * UNMEASURED:.0f} points), by which runs of one program at other clocks have differed. Another node or"
        " neighbour can shift a run by more; further runs named as repeats would measure it."
    ),
    REPEATS: (
        "Noise is the scatter between runs of the same side, pooled over both, and the noise floor is the largest"
        " difference between two runs of one side. Runs are taken as exchangeable: made under the same conditions, in"
        " no order that matters."
    ),
}
READ_IN_PART = "was read in part only"
PARTS = ("time_ns", "launches_ns", "configurations_ns", "lone_ns")


def check_pair(baseline: str, candidate: str, repeats: Sequence[Sequence[str]]) -> None:
    """Refuse a dataset that stands on both sides, or twice on one.

    Raises
    ------
    CausewayError
    """
    named = [baseline, *repeats[0], candidate, *repeats[1]]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise CausewayError(
            f"comparison of {baseline} and {candidate}: {', '.join(twice)} is named twice; each run stands once, on one"
            " side"
        )


def run(
    names: Sequence[Sequence[str]],
    folders: Mapping[str, Sequence[str]],
    efficiency: Mapping[str, str],
    causes: Sequence[Mapping[str, str]],
    replays: Mapping[str, str],
    choices: Mapping,
    out_json: str | Path,
    out_table: str | Path,
    steps: Mapping[str, str] | None = None,
    attribute: Callable[[Sequence[Mapping], Sequence[Mapping]], dict | None] | None = None,
) -> None:
    """Write `comparison.json` and `comparison.parquet`; where there is nothing to compare, that and why.

    Parameters
    ----------
    names : (baseline and its repeats, candidate and its repeats)
    folders : mapping of str to sequence of path
        Folders of tables by dataset.
    efficiency : mapping of str to path
        `efficiency.parquet` by dataset, of those that have one.
    causes : per side, mapping of str to path
        Contributions of the whole dataset by target; empty where causes are not compared.
    replays : mapping of str to path
        `replay.parquet` by dataset, of those that have one.
    choices : mapping
        resamples, confidence, false_discovery_rate, same_within_percent, seed.
    out_json, out_table : path
    steps : mapping of str to path, optional
        `steps.parquet` by dataset, of those that have one.
    attribute : callable, optional
        Gives from the rows of the table, and the `causes` of what these compare, what the changes of kernels came with,
        for the document.

    Raises
    ------
    CausewayError
        If a dataset is named twice.
    """
    check_pair(names[0][0], names[1][0], (names[0][1:], names[1][1:]))
    every = [name for side in names for name in side]
    settings = common_settings({name: folders[name] for name in every})
    by_message = all(has_messages(folders[name]) for name in every)
    time = common_time([folders[side[0]] for side in names])
    runs, unread = _measured(every, folders, settings.columns, by_message, time)
    baseline, candidate = (runs.get(side[0]) for side in names)
    gaps = _unread_repeats(names, unread)
    rows: list[dict] = []
    if baseline is None or candidate is None:
        why = ". ".join(unread.values())
        document = _not_compared(names, (baseline, candidate), choices, f"{why}.", gaps)
        LOG.warning("%s", why)
    else:
        measured = [[runs[name] for name in side if name in runs] for side in names]
        matches = _with_inputs(match_kernels(baseline.kernels, candidate.kernels), measured, folders)
        document, rows = _compared(measured, gaps, matches, folders, efficiency, causes, replays, choices, steps or {})
        mains = [Side(side[:1]) for side in measured]
        document["settings"] = settings_document(settings, mains)
        document["effects"] = [
            effect | {"column": settings.raw_names.get(effect["column"], effect["column"])}
            for effect in kernel_effects(settings.columns, mains, matches, rows)
        ]
        document["other_shapes"] = other_shapes(mains, matches)
        means = [counter_means(folders[side[0]]) for side in names]
        kernel_names = [
            (baseline.kernels.names[own], candidate.kernels.names[other]) for own, other in pairs_in(matches).items()
        ]
        document["counters"] = kernel_counters(means, kernel_names)
        causes_of_time = [{name: side[name] for name in side if time in ("", name, any_unit(name))} for side in causes]
        document["attributions"] = attribute(rows, causes_of_time) if attribute and all(causes_of_time) else None
        LOG.info("%s", document["verdicts"])
    write_json(document, out_json, "comparison")
    table = pa.Table.from_pylist(rows, schema=SCHEMAS["comparison"])
    write_table(table, out_table, "comparison", metadata={"baseline": names[0][0], "candidate": names[1][0]})


def _measured(
    names: Sequence[str], folders: Mapping[str, Sequence[str]], settings: Sequence[str], by_message: bool, time: str
) -> tuple[dict[str, Run], dict[str, str]]:
    """Return the runs by dataset, and why others could not be measured, by dataset."""
    runs = {}
    unread = {}
    for name in names:
        try:
            runs[name] = measure(name, folders[name], settings, by_message, time)
        except NotComparableError as error:
            unread[name] = str(error)
    return runs, unread


def _with_inputs(
    matches: Sequence[Match], measured: Sequence[Sequence[Run]], folders: Mapping[str, Sequence[str]]
) -> list[Match]:
    """Return the matches of kernels, those marked whose operators have no input on both sides."""
    before, after = (inputs_by_kernel(folders[side[0].dataset]) for side in measured)
    names = [side[0].kernels.names for side in measured]
    kept = []
    for match in matches:
        if match.baseline is not None and match.candidate is not None:
            own = before.get(names[0][match.baseline])
            other = after.get(names[1][match.candidate])
            is_other = match.has_other_inputs or bool(own and other and own.isdisjoint(other))
            kept.append(replace(match, has_other_inputs=is_other))
        else:
            kept.append(match)
    return kept


def _unread_repeats(names: Sequence[Sequence[str]], unread: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the repeats that could not be measured, each with its side and why: the rest is compared without them."""
    return [
        {"side": word, "dataset": name, "why": unread[name]}
        for word, side in zip(SIDES, names, strict=True)
        for name in side[1:]
        if name in unread
    ]


def _noise_of(names: Sequence[Sequence]) -> str:
    return HALVES if all(len(side) == 1 for side in names) else REPEATS


def _not_compared(
    names: Sequence[Sequence[str]],
    mains: Sequence[Run | None],
    choices: Mapping,
    why: str,
    unread: Sequence[Mapping[str, str]],
) -> dict:
    """Return the document of two runs with nothing to compare: what is known of each, and why."""
    unknown = dict.fromkeys(
        (
            "assumption",
            "same_content",
            "matched",
            "change_ns",
            "operators",
            "causes",
            "attributions",
            "replays",
            "replayed",
        )
    )
    return {
        "schema_version": "1",
        "why": why,
        **{word: _facts(side, main) for word, side, main in zip(SIDES, names, mains, strict=True)},
        "unread_repeats": list(unread),
        "noise": _noise_of(names),
        **unknown,
        "choices": dict(choices),
        "matches": [],
        "verdicts": {},
        "left_out": {},
        "decomposition": [],
        "not_compared": [why],
    }


def _compared(
    measured: Sequence[Sequence[Run]],
    unread: Sequence[Mapping[str, str]],
    matches: Sequence[Match],
    folders: Mapping[str, Sequence[str]],
    efficiency: Mapping[str, str],
    causes: Sequence[Mapping[str, str]],
    replays: Mapping[str, str],
    choices: Mapping,
    steps: Mapping[str, str],
) -> tuple[dict, list[dict]]:
    """Return the document of two runs, per side those measured, and the rows of the table; `unread` are the repeats
    that could not be measured.
    """
    shared, copies = _shared(measured)
    sides = [Side([run for run in side if run.dataset not in {copy.dataset for copy in copies}]) for side in measured]
    names = [[run.dataset for run in side.runs] for side in sides]
    for side in sides:
        LOG.info("%s: %d launches of %d kernels", side.main.dataset, side.main.launches, len(side.main.kernels.names))
    seed = choices["seed"]
    rate = choices["false_discovery_rate"]
    noise = _noise_of(names)
    settings = Choices(
        replicates=choices["resamples"],
        confidence=choices["confidence"],
        rate=rate,
        same_within=choices["same_within_percent"] / 100,
        unmeasured=UNMEASURED if noise == HALVES else 0.0,
    )
    rows, left_out = compare_groups(sides, matches, settings, seed)
    every = [name for side in names for name in side]
    if all(name in efficiency for name in every):
        courses = [[Course(efficiency[name]) for name in side] for side in names]
        rows += compare_efficiency([side[0] for side in names], courses, settings, seed)
        for metric in ("copies", "idle"):
            rows += compare_times(metric, [[course.times[metric] for course in side] for side in courses], settings)
    rows += compare_times("span", [[run.span_ns for run in side.runs] for side in sides], settings)
    if all(name in steps for name in every):
        rows += compare_steps(
            [side[0] for side in names], [[steps[name] for name in side] for side in names], settings, seed
        )
    rows += lone_rows(sides, matches)
    operators = compare_operators(sides, folders, steps, settings, seed)
    rows += operators.rows
    rows = _without_claims_of_one_recording(rows, sides, shared)
    pairs = {ours: other for ours, (other, *_) in configuration_pairs(sides, matches).items()}
    parts = decomposition(sides, matches, pairs)
    mains = [side[0] for side in names]
    both = [read_replays(replays[name]) if name in replays else {} for name in mains]
    replayed = compare_replays(both)
    document = {
        "schema_version": "1",
        "why": None,
        "baseline": _facts(names[0], sides[0].main),
        "candidate": _facts(names[1], sides[1].main),
        "unread_repeats": list(unread),
        "noise": noise,
        "assumption": " ".join(
            [*_sentences(shared, copies), *map(_unread, unread), *_other_devices(sides), ASSUMPTIONS[noise]]
        ),
        "same_content": {
            "sides": None if shared is None else asdict(shared),
            "repeats": [asdict(copy) for copy in copies],
        },
        "choices": dict(choices),
        "matches": [_match(match, sides) for match in matches if match.how != EXACT or match.note],
        "matched": {how: sum(match.how == how for match in matches) for how in MATCHES},
        "verdicts": _counts(rows),
        "left_out": left_out | operators.left_out,
        "decomposition": parts,
        "change_ns": {part: sum(row[part] for row in parts) for part in PARTS},
        "operators": operators.document,
        "quantiles": kernel_quantiles(sides, matches, rows, settings),
        "causes": compare_causes([read_causes(side) for side in causes], rate) if all(causes) else None,
        "replays": replayed,
        "replayed": replayed and replayed_times(both),
        "not_compared": [
            *(f"{repeat['dataset']} is in no number: {repeat['why']}." for repeat in unread),
            *(sentence for side in measured for run in side for sentence in _incomplete(run)),
            *_gaps(sides, matches, every, efficiency, causes, replayed),
            *operators.gaps,
        ],
    }
    return document, rows


def _shared(sides: Sequence[Sequence[Run]]) -> tuple[Shared | None, list[Shared]]:
    """Return what the two main runs share, and each repeat that shares a recording with a run before it: it is no
    further run, so that the scatter between runs would come out too small.
    """
    kept = [side[0] for side in sides]
    baseline, candidate = kept
    shared = shared_by(candidate.dataset, candidate.recordings, baseline.dataset, baseline.recordings)
    copies = []
    for repeat in (run for side in sides for run in side[1:]):
        overlaps = (
            shared_by(repeat.dataset, repeat.recordings, earlier.dataset, earlier.recordings) for earlier in kept
        )
        copy = next((overlap for overlap in overlaps if overlap is not None), None)
        if copy is None:
            kept.append(repeat)
        else:
            copies.append(copy)
    return shared, copies


def _sentences(shared: Shared | None, copies: Sequence[Shared]) -> list[str]:
    """Return what follows from recordings that stand in more than one dataset: one sentence each."""
    sentences = [f"{copy.words()}: it is no further run, and no noise is learned from it." for copy in copies]
    if shared is not None:
        sentences.insert(0, f"{shared.words()}: it was measured once, which says nothing of how two runs differ.")
    return sentences


def _unread(repeat: Mapping[str, str]) -> str:
    """Return that a repeat could not be measured; why stands elsewhere, as it holds words of an export."""
    return (
        f"{repeat['dataset']}, a repeat of the {repeat['side']}, could not be measured: it is in no number, and no"
        " noise is learned from it."
    )


def _incomplete(run: Run) -> list[str]:
    """Return one sentence for each export of a run that was not read, or in part."""
    return [
        f"{run.dataset}: export {export} {'could not be read and is in no number' if is_refused else READ_IN_PART}."
        for export, is_refused in run.incomplete
    ]


def _other_devices(sides: Sequence[Side]) -> list[str]:
    """Return one sentence if the runs are known to have devices of different names, which run has which."""
    runs: dict[tuple[str, ...], list[str]] = {}
    for run in (run for side in sides for run in side.runs):
        device_names = [name for name in run.devices.values() if name is not None]
        if device_names and len(device_names) == len(run.devices):
            runs.setdefault(tuple(sorted(set(device_names))), []).append(run.dataset)
    if len(runs) < 2:
        return []
    parts = [f"{', '.join(map(name_in_sentence, devices))} in {', '.join(names)}" for devices, names in runs.items()]
    return [f"The devices differ ({'; '.join(parts)}): a change may be the device's and not the program's."]


def _without_claims_of_one_recording(rows: Sequence[dict], sides: Sequence[Side], shared: Shared | None) -> list[dict]:
    """Return the rows, undecided where both sides are the same recording: of each such rank, and all if they share all.

    Such a group differs in nothing, and by how much two runs of it would differ was not measured.
    """
    if shared is None:
        return list(rows)
    ranks = {str(rank) for rank in same_ranks(*(side.main.recordings for side in sides))}
    measured_once = Reason("same_recording")
    undecided = {
        **dict.fromkeys(("low_percent", "high_percent", "floor_percent", "p_value", "q_value")),
        "verdict": INCONCLUSIVE,
        "reason": measured_once.words,
        "reason_code": measured_once.code,
    }

    def is_one_recording(row: Mapping) -> bool:
        on_both = row["change_percent"] is not None
        return on_both and (shared.is_all or (row["level"] == "rank" and row["candidate"] in ranks))

    return [{**row, **undecided} if is_one_recording(row) else row for row in rows]


def _facts(names: Sequence[str], main: Run | None) -> dict:
    """Return what is known of a side, by the names of its runs; null where the first could not be measured."""
    named = {"dataset": names[0], "repeats": list(names[1:])}
    if main is None:
        return named | dict.fromkeys(("launches", "kernels", "ranks", "devices", "gpu_time_ns", "span_ns"))
    return {
        **named,
        "launches": main.launches,
        "kernels": len(main.kernels.names),
        "ranks": list(main.ranks),
        "devices": [
            {"name": name, "number": number}
            for name, number in sorted(Counter(main.devices.values()).items(), key=lambda pair: pair[0] or "")
        ],
        "gpu_time_ns": main.total_ns,
        "span_ns": main.span_ns,
    }


def _match(match, sides: Sequence[Side]) -> dict:
    names = [
        None if number is None else side.main.kernels.names[number]
        for side, number in zip(sides, (match.baseline, match.candidate), strict=True)
    ]
    return {"how": match.how, "baseline": names[0], "candidate": names[1], "note": match.note}


def _counts(rows: Sequence[Mapping]) -> dict[str, dict[str, dict[str, int]]]:
    by_level: dict[str, dict[str, dict[str, int]]] = {}
    for row in rows:
        counts = by_level.setdefault(row["level"], {}).setdefault(row["metric"], {})
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    return by_level


def _gaps(
    sides: Sequence[Side],
    matches: Sequence[Match],
    names: Sequence[str],
    efficiency: Mapping,
    causes: Sequence[Mapping],
    replayed: Sequence[Mapping] | None,
) -> list[str]:
    """Return what was not compared, and why: one sentence each."""
    gaps = []
    if all(match.how in (NEW, GONE) for match in matches):
        gaps.append(
            f"{sides[0].main.dataset} and {sides[1].main.dataset} have no kernel in common, by name, by name without"
            " template arguments, numbers of the build and architecture, or by their position in the order of launches:"
            " the time of the same launches is not compared, what concerns the whole runs is."
        )
    gaps += [
        f"{side.main.dataset} has no time line (counters, or a table): its times are compared, span and"
        " efficiency are not."
        for side in sides
        if side.main.span_ns is None
    ]
    without = [name for name in names if name not in efficiency]
    if without and all(side.main.span_ns is not None for side in sides):
        gaps.append(f"Efficiency is not compared: {', '.join(without)} has no efficiency tree.")
    if not all(causes):
        gaps.append("Causes are not compared: the configuration leaves them out, or the datasets share no target.")
    if replayed is None and all(side.main.span_ns is not None for side in sides):
        gaps.append("What changes would save is not compared: there is no replay of one side (see docs/waiting.md).")
    for level, words in (("ranks", "rank"), ("regions", "region")):
        ours, theirs = (set(getattr(side.main, level)) for side in sides)
        if (ours or theirs) and not ours & theirs:
            gaps.append(f"No {words} is on both sides.")
    return gaps


SIDES = ("baseline", "candidate")
NOTHING = "nothing"
"""The change of a replay that changes nothing: the run as it was measured, and what limits it."""


def read_replays(path: str | Path) -> dict[tuple[str, str | None], dict]:
    """Return the replays of a whole run by change and what is changed, from `replay.parquet`."""
    rows = read_table(path, "replay").to_pylist()
    return {(row["change"], row["name"]): row for row in rows if row["step"] is None}


def compare_replays(sides: Sequence[Mapping[tuple[str, str | None], Mapping]]) -> list[dict] | None:
    """Return one row per change that either side was replayed with, the one that saves most on either side first, the
    run as measured at the top; None where a side has no replay.

    Kernels are the same where their short names are: of each run only those that matter most were made faster, so a row
    may have one side alone.
    """
    if not all(sides):
        return None
    keys = sorted({key for side in sides for key in side}, key=lambda key: (key[0], key[1] or ""))
    rows: list[dict] = [
        {"change": key[0], "name": key[1]}
        | {side: _one(replays.get(key)) for side, replays in zip(SIDES, sides, strict=True)}
        for key in keys
    ]
    return sorted(rows, key=lambda row: (row["change"] != NOTHING, -_most(row)))


def replayed_times(sides: Sequence[Mapping[tuple[str, str | None], Mapping]]) -> dict[str, dict | None]:
    """Return by side how long the replayed run is as it was measured, and how much of that is from the first work of a
    device to the end of the last: a replay holds the calls before and after, too. None where it is not known.
    """
    times = {}
    for side, replays in zip(SIDES, sides, strict=True):
        row = replays.get((NOTHING, None))
        measured = row if row is not None and row["device_time_ns"] is not None else None
        times[side] = {key: measured[key] for key in ("time_ns", "device_time_ns")} if measured else None
    return times


def _one(row: Mapping | None) -> dict | None:
    if row is None:
        return None
    return {
        "predicted_ns": row["predicted_ns"],
        "saved_ns": row["time_ns"] - row["predicted_ns"],
        "saved_percent": 100 * (row["time_ns"] - row["predicted_ns"]) / row["time_ns"] if row["time_ns"] else None,
        "limited_by": row["limited_by"],
        "limited_name": row["limited_name"],
    }


def _most(row: Mapping) -> float:
    return max((row[side]["saved_percent"] or 0.0) for side in SIDES if row[side])
