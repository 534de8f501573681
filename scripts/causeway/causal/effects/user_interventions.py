"""What the configuration asks of the fitted model: free interventions, answered with an interval or refused with the reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.causal.discovery import Arrow, Outcome
from causeway.causal.interventions import (
    MAX_OUTSIDE,
    MOMENTS,
    NO_LEVER,
    Model,
    filled,
    judged,
    of_configurations,
    played,
    slopes_of,
    unobserved,
    usual_value,
)
from causeway.causal.settings import MIN_SHARE, NONE, SUPPORT_SLACK, like_zero, measured, number_text
from causeway.causal.words import called

TOLERANCE = 1e-9


class RefusedError(Exception):
    """An intervention that cannot be answered; the message says why."""


@dataclass(frozen=True)
class Question:
    """One entry of `causes/what_if`: its name, the kernels it is about (all and the whole dataset if None), and the values to set."""

    name: str
    kernel: str | None
    values: Mapping[str, object]

    def concerns(self, scope: str, name: str | None) -> bool:
        """Tell whether a scope, a kernel's id or `dataset`, is asked: by its id, a part of its full name, or a regular expression."""
        if self.kernel is None:
            return True
        if name is None:
            return scope == self.kernel
        try:
            expression = re.search(self.kernel, name) is not None
        except re.error:
            expression = False
        return scope == self.kernel or self.kernel in name or expression


def questions_of(entries: Sequence[Mapping]) -> list[Question]:
    """Return the questions of the configuration's list."""
    return [Question(entry["name"], entry.get("kernel"), dict(entry["set"])) for entry in entries]


def launch_values(table: pa.Table, questions: Sequence[Question]) -> dict[int, dict[str, float]]:
    """Return by configuration what the questions want to know of it; nothing where none names a configuration."""
    wanted = {feature for q in questions for feature, value in q.values.items() if isinstance(value, Mapping) and "configuration" in value}
    wanted &= set(table.column_names)
    if not wanted:
        return {}
    numbers = table.column("configuration").to_numpy()
    found: dict[int, dict[str, float]] = {}
    for number, row in zip(*np.unique(numbers, return_index=True), strict=True):
        found[int(number)] = {feature: table.column(feature)[int(row)].as_py() for feature in wanted}
    return found


def unanswered(questions: Sequence[Question], scopes: Sequence[tuple[str, str | None]]) -> list[dict]:
    """Return a row for each question that is about none of the scopes, given by id and full name."""
    asked = [question for question in questions if not any(question.concerns(*scope) for scope in scopes)]
    return [_refused(question, f"no analysed kernel is called {question.kernel}") for question in asked]


def answers(questions: Sequence[Question], outcome: Outcome, model: Model | None, shapes: Mapping[int, Mapping[str, float]]) -> list[dict]:
    """Return a row of `whatif.parquet` for each question that concerns a scope.

    Parameters
    ----------
    questions : sequence of Question
    outcome : Outcome
    model : Model or None
        None where no cause was found or the search was refused.
    shapes : mapping
        `launch_values` of the scope.
    """
    rows = []
    for question in questions:
        if any(question.concerns(*one) for one in outcome.scope.answered):
            try:
                rows.append(_answer(question, outcome, model, shapes))
            except RefusedError as refusal:
                rows.append(_refused(question, str(refusal)))
    return rows


def _refused(question: Question, why: str) -> dict:
    none = dict.fromkeys(("change_percent", "change_low", "change_high"))
    named = {"feature": ", ".join(question.values), "from": "as it was", "to": ", ".join(map(_plain, question.values.values()))}
    return {**named, **none, "verdict": "refused", "reason": f"refused: {why}", "asked": question.name}


def _plain(value: object) -> str:
    """Return a wanted value in words, before its unit is known."""
    if isinstance(value, Mapping):
        ((kind, number),) = value.items()
        return f"as in configuration {number}" if kind == "configuration" else f"its {100 * number:g}th percentile"
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _answer(question: Question, outcome: Outcome, model: Model | None, shapes: Mapping[int, Mapping[str, float]]) -> dict:
    if model is None:
        if outcome.evidence is None:
            raise RefusedError(outcome.reasons[0])
        raise RefusedError("no cause was found here that could be set")
    likes: dict[int, np.ndarray] = {}
    used, befores, afters, moves = [], [], [], []
    for feature, wanted in question.values.items():
        value = _resolved(feature, wanted, shapes)
        arrow = _arrow(feature, outcome, model)
        used.append(arrow)
        if arrow.stage == "configuration":
            move, before, after = _launched(feature, arrow, value, model)
            moves.append((arrow, move))
        else:
            like, before, after = _within(feature, arrow, value, model)
            likes[model.within.index(arrow)] = like
        befores.append(before)
        afters.append(after)
    change, low, high = _change(likes, moves, model)
    numbers = {"change_percent": change, "change_low": low, "change_high": high}
    verdict, reason = judged(used, low, high)
    words = {"feature": ", ".join(question.values), "from": ", ".join(befores), "to": ", ".join(afters)}
    return {**words, **numbers, "verdict": verdict, "reason": reason, "asked": question.name}


def _resolved(feature: str, wanted: object, shapes: Mapping[int, Mapping[str, float]]) -> object:
    """Return the value meant by `configuration: N`, other values as they are."""
    if not isinstance(wanted, Mapping) or "configuration" not in wanted:
        return wanted
    number = wanted["configuration"]
    if number not in shapes:
        raise RefusedError(f"configuration {number} has no launches here; those that have are {_listed(map(str, shapes))}")
    value = shapes[number].get(feature)
    if value is None:
        raise RefusedError(f"configuration {number} has no {feature}")
    return value


def _listed(words) -> str:
    words = list(words)
    return ", ".join(words[:8]) + (f" and {len(words) - 8} more" if len(words) > 8 else "") or "none"


def _span(low: float, high: float, unit: str) -> str:
    """Return a range in words."""
    return number_text(low, unit) if low == high else f"{number_text(low, unit)} to {number_text(high, unit)}"


def _arrow(feature: str, outcome: Outcome, model: Model) -> Arrow:
    """Return the cause that a feature is, or that stands for it."""
    found = next((arrow for arrow in (*model.within, *model.configured) if feature in arrow.candidate.members), None)
    if feature in MOMENTS:
        raise RefusedError(NO_LEVER.removeprefix("refused: "))
    if found is None:
        if all(column.name != feature for column in outcome.evidence.columns):
            raise RefusedError(f"nothing called {feature} was measured")
        causes = _listed(arrow.candidate.name for arrow in (*model.within, *model.configured))
        raise RefusedError(f"{called(feature)} is no cause that was found here, so that setting it tells nothing; causes are {causes}")
    return found


def _launched(feature: str, arrow: Arrow, value: object, model: Model) -> tuple[np.ndarray, str, str]:
    """Return how far a launch parameter moves in each configuration, and the value before and after in words."""
    natural, kernel_of, _ = of_configurations(arrow, model.evidence.rows)
    position, unit = arrow.configured.position, arrow.configured.candidate.unit
    if feature != arrow.candidate.name:
        raise RefusedError(f"{called(feature)} changes together with {called(arrow.candidate.name)}; set that one")
    if isinstance(value, Mapping):
        value = float(np.quantile(natural, value["quantile"], method="nearest"))
    if isinstance(value, str):
        raise RefusedError(f"{called(feature)} is a number, not {value}")
    moved = np.empty(natural.size)
    for kernel in np.unique(kernel_of):
        mine = np.flatnonzero(kernel_of == kernel)
        low, high = float(natural[mine].min()), float(natural[mine].max())
        if not low - TOLERANCE * abs(low) <= value <= high + TOLERANCE * abs(high):
            had = f"launches{'' if np.ptp(kernel_of) == 0 else ' of one of the kernels'} had {_span(low, high, unit)}"
            raise RefusedError(f"{called(feature)} of {number_text(value, unit)} was not observed; {had}")
        order = mine[np.argsort(natural[mine], kind="stable")]
        moved[mine] = _between(value, natural[order], position[order]) - position[mine]
    return moved, number_text(usual_value(natural, model.outlook), unit), number_text(value, unit)


def _between(value: float, natural: np.ndarray, position: np.ndarray) -> float:
    """Return the position of a value between observed ones, on the logarithmic scale of sizes where all are positive."""
    if natural[0] > 0:
        return float(np.interp(np.log(value), np.log(natural), position))
    return float(np.interp(value, natural, position))


def _within(feature: str, arrow: Arrow, value: object, model: Model) -> tuple[np.ndarray, str, str]:
    """Return for each row the row whose value of the cause it takes (-1 for none), and the value before and after in words."""
    candidate, pick, weight = arrow.candidate, model.pick, model.outlook.weight
    values = candidate.values[pick]
    if values.ndim > 1:
        return _level(candidate, values, value, weight), "as it was", str(value)
    raw = measured(next(column for column in model.evidence.columns if column.name == feature), pick)
    unit = next(column.unit for column in model.evidence.columns if column.name == feature)
    if isinstance(value, Mapping):
        order = np.argsort(values, kind="stable")
        reached = np.cumsum(weight[order]) / weight.sum()
        row = int(order[min(np.searchsorted(reached, value["quantile"]), order.size - 1)])
        return np.full(pick.size, row), "as it was", f"its {100 * value['quantile']:g}th percentile"
    if value == NONE:
        value = 0.0
    if isinstance(value, str) or raw is None:
        raise RefusedError(f"{called(feature)} is a number, not {value}")
    known = raw[np.isfinite(raw)]
    low, high = float(known.min()), float(known.max())
    if not low <= value <= high:
        raise RefusedError(f"{called(feature)} of {number_text(value, unit)} was not observed; launches had {_span(low, high, unit)}")
    before = f"as it was (median {number_text(float(np.median(known)), unit)})"
    configuration = model.outlook.configuration
    if value == 0:
        return like_zero(values, raw, configuration, weight), before, NONE
    return _nearest(raw, float(value), configuration), before, number_text(value, unit)


def _level(candidate, values: np.ndarray, value: object, weight: np.ndarray) -> np.ndarray:
    level = (values * np.arange(1, values.shape[1] + 1)).sum(axis=1).astype(int)
    names = list(candidate.levels)
    wanted = f"{value:g}" if isinstance(value, int | float) else str(value)
    shares = np.bincount(level, weight, len(names)) / weight.sum()
    seen = sorted(name for name, share in zip(names, shares, strict=True) if share >= MIN_SHARE)
    if wanted not in seen:
        raise RefusedError(f"{called(candidate.name)} {wanted} was not observed, or hardly; observed were {_listed(seen)}")
    return np.full(level.size, int(np.flatnonzero(level == names.index(wanted))[0]))


def _nearest(raw: np.ndarray, value: float, configuration: np.ndarray) -> np.ndarray:
    """Return for each row the one of its configuration whose value is nearest, -1 where none is near or the value outside their range."""
    like = np.full(raw.size, -1)
    for number in np.unique(configuration):
        mine = np.flatnonzero((configuration == number) & np.isfinite(raw))
        if mine.size and raw[mine].min() <= value <= raw[mine].max():
            row = mine[np.argmin(np.abs(raw[mine] - value))]
            if abs(raw[row] - value) <= SUPPORT_SLACK * raw[mine].std():
                like[configuration == number] = row
    return like


def _change(likes: dict[int, np.ndarray], moves: list[tuple[Arrow, np.ndarray]], model: Model) -> tuple[float, float, float]:
    """Return the change of the target's mean size in percent and the ends of its interval."""
    outlook = model.outlook
    now = outlook.size(outlook.deviation)
    if now == 0:
        raise RefusedError("the target is zero as it is")
    if likes:
        outside = model.support.outside(likes, outlook.weight)
        if outside > MAX_OUTSIDE:
            raise RefusedError(unobserved(outside).removeprefix("refused: "))
        likes = {cause: filled(like) for cause, like in likes.items()}
    errors = [of_configurations(arrow, model.evidence.rows)[2] for arrow, _ in moves]
    ends = []
    for place in range(3):  # the slopes of launch parameters, and both ends of their intervals
        gain = sum((slopes_of(arrow, error)[place] * move for (arrow, move), error in zip(moves, errors, strict=True)), np.zeros(1))
        factor = np.exp(gain)[outlook.configuration] if moves else 1.0
        after = played(model.fitted, likes) if likes else outlook.deviation
        change = 100 * (outlook.size(after, None, factor) / now - 1)
        low = high = change
        if likes:
            linear, around = model.refits.changes(outlook, likes, factor)
            low, high = (float(min(change, linear) + np.quantile(around, 0.025)), float(max(change, linear) + np.quantile(around, 0.975)))
        ends.append((change, low, high))
    return ends[0][0], max(min(low for _, low, _ in ends), -100.0), max(high for _, _, high in ends)
