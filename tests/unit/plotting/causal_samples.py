"""Made-up causes of a target and their graph, in the stable layout."""

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, write_json, write_table

FEATURES = (
    # name, tier, group, unit
    ("h2d_bytes_in_flight", "context", "contention", "bytes"),
    ("grid_x", "launch", "launch configuration", ""),
    ("launches_in_flight", "context", "contention", ""),
    ("idle_before_ns", "context", "time", "ns"),
    ("device", "context", "placement", ""),
    ("transfer_copy_kind", "context", "contention", ""),
    ("dynamic_shared_bytes", "launch", "launch configuration", "bytes"),
    ("dram_read_bytes", "counter", "memory system", "bytes"),
    ("previous_deviation", "context", "time", "ns"),
)


def contribution_rows(causes=6, seed=3, features=FEATURES):
    rng = np.random.default_rng(seed)
    shares = np.sort(rng.dirichlet(np.full(causes + 1, 1.5)))[::-1] * 100 if causes else np.array([100.0])
    rows = []
    for number in range(causes):
        name, tier, group, _ = features[number % len(features)]
        name = name if number < len(features) else f"{name}_{number}"
        percent = float(shares[number + 1] if number + 1 < len(shares) else 1.0)
        other = float(shares[causes - number])  # of |deviation|: nothing that is shown, and in another order
        rows.append(
            {
                "feature": name,
                "group": group,
                "tier": tier,
                "members": [name] if number % 3 else [name, f"{name}_copy", f"{name}_total"],
                "stage": "mean" if number % 2 else "scale",
                "level": None,
                "sign": "+" if number % 5 in (0, 3) else "?" if number % 5 == 4 else "-",
                "sign_of": "value" if number % 5 == 3 else "target",
                **{"value_effect": 0.3, "value_effect_low": 0.2, "value_effect_high": 0.4},
                "effect": float(rng.uniform(0.1, 0.6)),
                "effect_low": 0.08,
                "effect_high": 0.7,
                "contribution_percent": other,
                "contribution_low": other * 0.8,
                "contribution_high": other * 1.2,
                "variance_percent": percent,
                "variance_low": percent * 0.8,
                "variance_high": percent * 1.2,
                "q_value": 0.003,
                "robustness": [0.41, 0.18, 0.33, 0.22, 0.3, 0.38][number % 6],
                "verdict": "inconclusive" if number % 5 == 4 else "supported",
            }
            | in_time(number, causes)
        )
    return rows, float(shares[0])


def in_time(number, causes):
    """What a cause does to the duration; the fifth of five undecided, the fourth of four not monotone."""
    size = (causes - number) * 0.7 + 1.0
    sign = -1.0 if number % 5 in (1, 2) else 1.0
    found = {"role": ("exposure", "lever", "mediator")[number % 3], "launches": 9_000}
    for name, factor in (("mean", 1.0), ("p50", 0.8), ("p99", 2.5), ("spread", 3.0)):
        change = sign * factor * size
        low, high = sorted((0.6 * change, 1.4 * change))
        low = -1.0 if number % 5 == 4 else low
        found |= {f"{name}_change_percent": change, f"{name}_change_low": low, f"{name}_change_high": high}
    cost = size * 40e6
    found |= {"cost_ns": cost, "cost_low": 0.7 * cost, "cost_high": 1.3 * cost}
    return found | {"monotone": number % 4 != 3, "determines_time": False}


def sentence_of(row):
    verb = {"+": "raise", "-": "lower"}.get(row["sign"], "change")
    share = (
        f"{row['variance_percent']:.0f} % [{row['variance_low']:.0f}, {row['variance_high']:.0f}] of the variance of the"
        " durations"
    )
    ends = f"robustness {row['robustness']}"
    return (
        f"Higher values of {row['feature']} {verb} its deviation ({share}); {ends}; direct cause if no unmeasured"
        " common cause."
    )


def graph_of(
    dataset="demo",
    target="kernel_variability",
    scope="dataset",
    name=None,
    causes=6,
    seed=3,
    context=0,
    features=FEATURES,
):
    rows, rest = contribution_rows(causes, seed, features)
    keys = (
        "sign",
        "sign_of",
        "effect",
        "contribution_percent",
        "contribution_low",
        "contribution_high",
        "variance_percent",
        "variance_low",
        "variance_high",
        "q_value",
    )
    keys += ("robustness", "verdict")
    edges = [
        {"source": row["feature"], "target": target, "kind": "directed", **{key: row[key] for key in keys}}
        for row in rows
    ]
    empty = dict.fromkeys(keys[1:])
    edges.append(
        {
            "source": "unexplained",
            "target": target,
            "kind": "directed",
            **empty,
            "sign": "?",
            "contribution_percent": rest,
            "variance_percent": rest,
        }
    )
    nodes = [{key: row[key] for key in ("group", "tier", "members")} | {"name": row["feature"]} for row in rows]
    rng = np.random.default_rng(seed)
    for number in range(context):
        nodes.append(
            {"name": f"gpu_counter_with_a_name_{number}", "group": "memory system", "tier": "counter", "members": []}
        )
        other = nodes[int(rng.integers(0, len(nodes) - 1))]["name"]
        kind = ("directed", "undirected", "bidirected")[number % 3]
        edges.append({"source": other, "target": nodes[-1]["name"], "kind": kind, **empty, "sign": "+-?"[number % 3]})
    nodes.append({"name": "unexplained", "group": "unexplained", "tier": "unexplained", "members": []})
    nodes.append({"name": target, "group": "target", "tier": "target", "members": [target]})
    nothing = (
        "No cause found: 412 effective samples; an effect above 8 % of the variance of the durations would have been"
    )
    nothing += " seen."
    return {
        "dataset": dataset,
        "target": target,
        "scope": scope,
        "scope_name": name,
        "nodes": nodes,
        "edges": edges,
        "target_node": target,
        "n_rows": 20_412,
        "n_effective": 3_120.5,
        "p_value": None,
        "q_value": None,
        "method": "markov blanket of mean and scale",
        "seed": 7,
        "verdict": "supported" if causes else "inconclusive",
        "reasons": [] if causes else [nothing],
        "dropped": [],
        "sentences": [sentence_of(row) for row in rows] if causes else [nothing],
    }


def write_scope(folder, graph, rows):
    names = SCHEMAS["contributions"].names
    table = pa.Table.from_pylist(
        [
            {name: row.get(name) for name in names}
            | {"sentence": None if row["feature"] == "unexplained" else sentence_of(row)}
            for row in rows
        ],
        schema=SCHEMAS["contributions"],
    )
    write_table(table, folder / graph["scope"] / "contributions.parquet", "contributions")
    write_json(graph, folder / graph["scope"] / "graph.json", "graph")
    causes = [row["feature"] for row in rows if row["feature"] != "unexplained"]
    ends = {"change_percent": -20.0, "change_low": -28.0, "change_high": -12.0, "verdict": "supported", "reason": None}
    ends |= {"mean_change_percent": -5.0, "mean_change_low": -6.0, "mean_change_high": -4.0}
    ends |= {"p99_change_percent": -9.0, "p99_change_low": -12.0, "p99_change_high": -7.0}
    ends |= {"saved_ns": 30e6, "saved_low": 20e6, "saved_high": 40e6}
    whatif = [{"feature": name, "from": "as it was (median 3)", "to": "none"} | ends for name in causes[:2]]
    refused = dict.fromkeys(("change_percent", "change_low", "change_high")) | {
        "verdict": "refused",
        "reason": "refused: never observed",
    }
    whatif += [{"feature": name, "from": "as it was", "to": "none"} | refused for name in causes[2:3]]
    said = {
        "asked": "a smaller grid",
        "sentence": "A smaller grid (grid size: 64) would cut the mean absolute deviation by 20 % [12, 28].",
    }
    whatif += [{"feature": name, "from": "as it was", "to": "64"} | ends | said for name in causes[:1]]
    whatif += [
        {"feature": name, "from": "as it was", "to": "9"} | refused | {"asked": "a tiny grid"} for name in causes[:1]
    ]
    table = pa.Table.from_pylist(whatif, schema=SCHEMAS["whatif"])
    write_table(table, folder / graph["scope"] / "whatif.parquet", "whatif")
