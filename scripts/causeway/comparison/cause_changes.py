"""What explains the variability of each side, and whether that changed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy import stats

from causeway.comparison.change_verdicts import adjusted
from causeway.core.tables import read_table
from causeway.core.vocabulary import APPEARED, CHANGED, GONE, INCONCLUSIVE, SUPPORTED

COLUMNS = ["feature", "variance_percent", "variance_low", "variance_high", "sign", "sign_of", "verdict"]
NORMAL = float(stats.norm.isf(0.025))


def read_causes(paths: Mapping[str, str | Path]) -> dict[str, dict[str, dict]]:
    """Return the supported causes of the whole dataset by target and feature, each with its share of the variance of
    the measured value, from `{target}/causal/dataset/contributions.parquet`.
    """
    found = {}
    for target, path in paths.items():
        rows = read_table(path, "contributions", COLUMNS).to_pylist()
        found[target] = {
            row["feature"]: row for row in rows if row["verdict"] == SUPPORTED and row["variance_percent"] is not None
        }
    return found


def compare_causes(sides: Sequence[Mapping[str, Mapping[str, dict]]], rate: float) -> list[dict]:
    """Return one row per target and supported cause of either side: shares of the variance of the measured value, their
    difference with its interval, verdict.

    The interval of the difference takes each side's own (Zou and Donner, Construction of confidence limits about effect
    measures: a general approach, Stat. Med. 27 (2008) 1693, eq. 3), its standard error is that interval's width over
    twice the normal quantile. A cause that one side does not have is `appeared` or `gone`: how large it could have been
    there is not known, so no interval is given.
    """
    rows = []
    for target in sorted(set(sides[0]) & set(sides[1])):
        for feature in sorted(set(sides[0][target]) | set(sides[1][target])):
            rows.append(_row(target, feature, sides[0][target].get(feature), sides[1][target].get(feature)))
    for row, q in zip(rows, adjusted([row["p_value"] for row in rows]), strict=True):
        row["q_value"] = q
        if q is not None:
            row["verdict"] = CHANGED if q <= rate else INCONCLUSIVE
    return rows


def _row(target: str, feature: str, before: Mapping | None, after: Mapping | None) -> dict:
    row: dict = {"target": target, "feature": feature, "baseline_percent": before and before["variance_percent"]}
    row |= {
        "candidate_percent": after and after["variance_percent"],
        "change": None,
        "low": None,
        "high": None,
        "p_value": None,
    }
    row |= {
        "signs": [before and before["sign"], after and after["sign"]],
        "sign_of": [side and side["sign_of"] for side in (before, after)],
    }
    row["verdict"] = GONE if after is None else APPEARED
    if before is None or after is None:
        return row
    row["change"] = after["variance_percent"] - before["variance_percent"]
    row["verdict"] = INCONCLUSIVE
    ends = [side[f"variance_{end}"] for side in (before, after) for end in ("low", "high")]
    if None not in ends:
        down = np.hypot(after["variance_percent"] - ends[2], ends[1] - before["variance_percent"])
        up = np.hypot(ends[3] - after["variance_percent"], before["variance_percent"] - ends[0])
        error = (down + up) / (2 * NORMAL)
        row |= {"low": float(row["change"] - down), "high": float(row["change"] + up)}
        row["p_value"] = (
            float(2 * stats.norm.sf(abs(row["change"]) / error)) if error > 0 else float(row["change"] == 0)
        )
    return row
