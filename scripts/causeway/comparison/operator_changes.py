"""Two runs by operator and input: the same work on both sides, whatever the kernels that do it are called."""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path

from causeway.comparison.change_estimates import Choices
from causeway.comparison.groups import MOST, Grouping, compare_groups, configuration_pairs, lone_rows
from causeway.comparison.over_time import decomposition
from causeway.comparison.runs.matching import Match, match_operators
from causeway.comparison.runs.operator_calls import OperatorCalls
from causeway.comparison.runs.run_totals import measured
from causeway.comparison.sides import Side, launches_of
from causeway.core.tables import read_table
from causeway.core.vocabulary import GONE, MATCHES, NEW

SIDES = ("baseline", "candidate")
NOT_RECORDED = "input not recorded"
CALLED = {"kernel": "operator", "launches_ns": "calls_ns", "configurations_ns": "inputs_ns"}
"""What columns of the decomposition by kernel are called of operators."""
STEP_COLUMNS = ["rank", "warm_up", "launches"]


def input_words(shape: Sequence[str | None]) -> str:
    """Return an operator's input in words: the sizes of its tensors, and their types where these are known."""
    dims, types = shape
    return NOT_RECORDED if dims is None else dims + (f" ({types})" if types else "")


OF_CALLS = Grouping(
    "all operators",
    {"run": "run", "kernel": "operator", "configuration": "operator_shape"},
    {"time_per_launch": "time_per_call"},
    "inputs",
    input_words,
)


@dataclass(frozen=True)
class Operators:
    """What is known of operators: rows of the table, the part of the document, groups that were left out by level, and
    what was not compared.
    """

    rows: list[dict]
    document: dict | None
    left_out: dict[str, int]
    gaps: list[str]


def compare_operators(
    sides: Sequence[Side],
    folders: Mapping[str, Sequence[str | Path]],
    steps: Mapping[str, str],
    choices: Choices,
    seed: int,
) -> Operators:
    """Return the comparison of the calls of operators; none where a run recorded none, or whole graphs: whose kernels
    they hold is not known.

    Inputs tell the work apart only where all runs recorded them, and their types likewise. Where both sides have some
    rank, calls of these ranks alone are compared: ranks may do other work.

    Parameters
    ----------
    sides : (baseline, candidate)
        As they are measured by kernel.
    folders : mapping of str to sequence of path
        Folders of tables by dataset.
    steps : mapping of str to path
        `steps.parquet` by dataset, of those that have one.
    choices : Choices
    seed : int
    """
    runs = [run for side in sides for run in side.runs]
    common = sorted(set.intersection(*(set(run.ranks) for run in runs)))
    with ExitStack() as opened:
        calls = [
            [
                opened.enter_context(closing(OperatorCalls(run.dataset, folders[run.dataset], common or run.ranks)))
                for run in side.runs
            ]
            for side in sides
        ]
        every = [run_calls for side in calls for run_calls in side]
        without = [
            run_calls.dataset
            for run_calls, run in zip(every, runs, strict=True)
            if not run_calls.gpu_time_ns or run.has_graphs
        ]
        if without:
            has_unused = any(run_calls.gpu_time_ns for run_calls in every)
            return Operators([], None, {}, _no_operators(without) if has_unused else [])
        unshaped = [run_calls.dataset for run_calls in every if not run_calls.has_shapes]
        by_type = not unshaped and all(run_calls.has_types for run_calls in every)
        by_operator = [
            [measured(*run_calls.grouped(not unshaped, by_type), leading=0) for run_calls in side] for side in calls
        ]
    ours = [Side(side) for side in by_operator]
    matches = match_operators(*(side.main.kernels for side in ours))
    grouping = replace(OF_CALLS, parts="operators") if unshaped else OF_CALLS
    rows, left_out = compare_groups(ours, matches, choices, seed, grouping)
    if unshaped:
        rows = [_by_name_alone(row, unshaped) for row in rows if row["level"] != "operator_shape"]
        left_out.pop("operator_shape", None)
    rows += lone_rows(ours, matches, OF_CALLS)
    share = _share_of_a_step(steps.get(sides[1].main.dataset), sides[1], common or sides[1].main.ranks)
    document = {
        "without_shapes": unshaped,
        "by_type": by_type,
        **{word: _facts(side[0]) for word, side in zip(SIDES, calls, strict=True)},
        "matched": {how: sum(match.how == how for match in matches) for how in MATCHES},
        "decomposition": _by_operator(ours, matches, share),
        "shapes": [] if unshaped else _by_shape(ours, matches, share),
    }
    gaps = [_no_shapes(unshaped)] if unshaped else []
    if all(match.how in (NEW, GONE) for match in matches):
        gaps.append("No operator is on both sides.")
    return Operators(rows, document, left_out, gaps)


def _no_operators(without: Sequence[str]) -> list[str]:
    return [f"Operators are not compared: {', '.join(without)} recorded none around its launches, or whole graphs."]


def _no_shapes(unshaped: Sequence[str]) -> str:
    return (
        f"Operators are compared by name alone: {', '.join(unshaped)} recorded no input shapes (PyTorch's profiler does"
        " with `record_shapes=True`). Calls with other inputs are then taken for the same work."
    )


def _by_name_alone(row: Mapping, unshaped: Sequence[str]) -> dict:
    words = f"by name alone: {', '.join(unshaped)} recorded no input shapes"
    return {**row, "note": "; ".join(filter(None, [row["note"], words]))}


def _facts(calls: OperatorCalls) -> dict[str, int]:
    return {"calls": calls.calls, "launches": calls.launches, "gpu_time_ns": calls.gpu_time_ns}


def _share_of_a_step(path: str | None, side: Side, ranks: Sequence[int]) -> float | None:
    """Return which part of the launches of some ranks one step of one of them holds, of the steps that are no warm-up;
    None without such steps.
    """
    rows = read_table(path, "steps", STEP_COLUMNS).to_pylist() if path else []
    rows = [row for row in rows if row["rank"] in ranks and not row["warm_up"]]
    indices = map(side.main.ranks.index, ranks)
    launches = sum(launches_of(side.totals(0, "rank", index)).launches for index in indices)
    return sum(row["launches"] for row in rows) / len(rows) / launches if rows else None


def _worth(time_ns: float, share: float | None) -> int | None:
    """Return what a change of all calls of a run is in one step of one rank, ns."""
    return None if share is None else round(time_ns * share)


def _by_operator(sides: Sequence[Side], matches: Sequence[Match], share: float | None) -> list[dict]:
    """Return where the difference of the time in operators comes from, operator by operator."""
    pairs = {number: other for number, (other, *_) in configuration_pairs(sides, matches).items()}
    return [
        {CALLED.get(key, key): value for key, value in row.items()} | {"step_ns": _worth(row["time_ns"], share)}
        for row in decomposition(sides, matches, pairs)
    ]


def _by_shape(sides: Sequence[Side], matches: Sequence[Match], share: float | None) -> list[dict]:
    """Return the calls of each operator with each input of both sides, those with the most time first: what the change
    of a call's time makes of all calls of the candidate.
    """
    rows = []
    for baseline, (other, *_) in configuration_pairs(sides, matches).items():
        kernel, (dims, types) = sides[1].main.configurations[other]
        before, after = (
            side.totals(0, "configuration", number)[number]
            for side, number in zip(sides, (baseline, other), strict=True)
        )
        change = math.fsum([after.time_ns, -after.launches * before.time_ns / before.launches])
        name = sides[1].main.kernels.names[kernel]
        rows.append(
            {
                "name": f"{name} | {input_words((dims, types))}",
                "operator": name,
                "baseline_operator": sides[0].main.kernels.names[sides[0].main.configurations[baseline][0]],
                "dims": dims,
                "types": types,
                "baseline_calls": before.launches,
                "candidate_calls": after.launches,
                "baseline_ns": before.time_ns,
                "candidate_ns": after.time_ns,
                "time_ns": round(change),
                "step_ns": _worth(change, share),
            }
        )
    rows.sort(key=lambda row: (-max(row["baseline_ns"], row["candidate_ns"]), row["name"]))
    return rows[: MOST["configuration"]]
