"""Made-up results in the stable layout, written through the one door, for the tests of figures, findings and overview."""

from pathlib import Path
from typing import ClassVar
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
from measured_samples import write_measured

from causeway.tables import SCHEMAS, write_json, write_table

MS = 1_000_000
HOSTILE = "</title><script>document.title='owned'</script>'; DROP TABLE kernels; -- $\\frac{a}$ &amp; \x00\u202e" + "<b onload=x>" * 9000
NAMES = (
    "void stencil::advance<4, double>(double const*, double*, int, int)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int, float)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, float)",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "reduce_final",
)
FACTS = {"value_unit": "ns", "bin_width": "10000000", "bin_unit": "ns"}
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


def parsed(svg):
    """The elements of an SVG; raises if it is not well formed."""
    return ET.fromstring(svg)  # noqa: S314


def field(name, kind, **facts):
    return pa.field(name, kind, nullable=True, metadata={key: value for key, value in facts.items() if value})


def bins_table(ranks=4, bins=60, seed=1, gap=(20, 26), width=10 * MS, starts=True, shift=0):
    """Bins of every rank, with a hole without launches in each lane and a burst of variability in the last rank."""
    rng = np.random.default_rng(seed)
    rows = []
    for rank in range(ranks):
        for number in range(bins):
            if gap[0] <= number < gap[1] or (rank == 1 and number % 9 == 4):
                continue
            burst = 6.0 if rank == ranks - 1 and 40 <= number < 46 else 1.0
            middle = 3_000 * burst * rng.lognormal(0, 0.25)
            spread = middle * burst
            start = number * width + rank * shift if starts else None
            values = [0.0, middle + 3 * spread, middle * 1.1, spread**2, spread, middle * 0.6, middle, middle * 1.7]
            rows.append([rank, number, start, int(rng.integers(20, 400)), *values])
    schema = SCHEMAS["bins"].with_metadata({f"causeway.{key}": value for key, value in FACTS.items()})
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(schema.names)}, schema=schema)


def ranking_table(bins, share=0.1):
    scores = bins.column("variance").to_pylist()
    order = sorted(range(len(scores)), key=lambda i: -scores[i])
    place = {row: position for position, row in enumerate(order)}
    kept = max(1, round(share * len(scores))) if scores else 0
    columns = {
        "rank": bins.column("rank"),
        "bin": bins.column("bin"),
        "score": scores,
        "order": [place[i] for i in range(len(scores))],
        "kept": [place[i] < kept for i in range(len(scores))],
        "control": [place[i] >= kept and place[i] % 3 == 0 for i in range(len(scores))],
        "inclusion_probability": [1.0 if place[i] < kept else 0.33 if place[i] % 3 == 0 else None for i in range(len(scores))],
    }
    return pa.table(columns, schema=SCHEMAS["ranking"])


def kernels_table(names=NAMES, seed=2):
    rng = np.random.default_rng(seed)
    shares = np.sort(rng.dirichlet(np.full(len(names), 0.6)))[::-1] if names else []
    rows = []
    for number, name in enumerate(names):
        launches = int(rng.integers(40, 60_000))
        median = float(rng.lognormal(11, 1.2))
        kind = "communication" if "nccl" in name else "memory" if "Fill" in name else "compute"
        spread = np.exp(-0.5 * ((np.arange(32) - 9) / 3.5) ** 2) + (0.05 if number % 2 else 0.25) * np.exp(
            -0.5 * ((np.arange(32) - 25) / 2) ** 2
        )
        line = np.abs(rng.normal(1, 0.3, 64)) * median * 0.1
        rows.append(
            {
                "kernel": f"k{number}-{number:010x}",
                "name": name,
                "short_name": name.split("(")[0].split("<")[0].split("::")[-1] or name,
                "class": kind,
                "launches": launches,
                "configurations": int(rng.integers(1, 5)),
                "value_sum": launches * median * 1.1,
                "value_min": median * 0.4,
                "value_max": median * 9.0,
                "value_median": median,
                "value_q1": median * 0.9,
                "value_q3": median * 1.2,
                "robust_cv": None if launches < 2 else float(rng.uniform(0.01, 0.6)),
                "target_sum": float(shares[number] * 9.4e9),
                "target_share": float(shares[number]),
                "histogram": [int(c) for c in spread / spread.sum() * launches],
                "timeline": [None if 20 <= i < 27 else float(v) for i, v in enumerate(line)],
            }
        )
    facts = {f"causeway.{key}": value for key, value in FACTS.items()}
    return pa.Table.from_pylist(rows, schema=SCHEMAS["kernel_summary"].with_metadata(facts))


def contribution_rows(causes=6, seed=3, features=FEATURES):
    rng = np.random.default_rng(seed)
    shares = np.sort(rng.dirichlet(np.full(causes + 1, 1.5)))[::-1] * 100 if causes else np.array([100.0])
    rows = []
    for number in range(causes):
        name, tier, group, _ = features[number % len(features)]
        name = name if number < len(features) else f"{name}_{number}"
        percent = float(shares[number + 1] if number + 1 < len(shares) else 1.0)
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
                "contribution_percent": percent,
                "contribution_low": percent * 0.8,
                "contribution_high": percent * 1.2,
                "stability": float(rng.uniform(0.6, 1.0)),
                "q_value": 0.003,
                "robustness": [0.41, 0.18, 0.33, 0.22, 0.3, 0.38][number % 6],
                "verdict": "inconclusive" if number % 5 == 4 else "supported",
            }
        )
    return rows, float(shares[0])


def sentence_of(row):
    verb = {"+": "raise", "-": "lower"}.get(row["sign"], "change")
    share = f"{row['contribution_percent']:.0f} % of its variance [{row['contribution_low']:.0f}, {row['contribution_high']:.0f}]"
    ends = f"found in {100 * row['stability']:.0f} % of resamples; robustness {row['robustness']}"
    return f"Higher values of {row['feature']} {verb} its deviation ({share}); {ends}; direct cause if no unmeasured common cause."


def graph_of(dataset="demo", target="kernel_variability", scope="dataset", name=None, causes=6, seed=3, context=0, features=FEATURES):
    rows, rest = contribution_rows(causes, seed, features)
    keys = ("sign", "sign_of", "effect", "contribution_percent", "contribution_low", "contribution_high", "stability", "q_value")
    keys += ("robustness",)
    edges = [{"source": row["feature"], "target": target, "kind": "directed", **{key: row[key] for key in keys}} for row in rows]
    empty = dict.fromkeys(keys[1:])
    edges.append({"source": "unexplained", "target": target, "kind": "directed", **empty, "sign": "?", "contribution_percent": rest})
    nodes = [{key: row[key] for key in ("group", "tier", "members")} | {"name": row["feature"]} for row in rows]
    rng = np.random.default_rng(seed)
    for number in range(context):
        nodes.append({"name": f"gpu_counter_with_a_name_{number}", "group": "memory system", "tier": "counter", "members": []})
        other = nodes[int(rng.integers(0, len(nodes) - 1))]["name"]
        kind = ("directed", "undirected", "bidirected")[number % 3]
        edges.append({"source": other, "target": nodes[-1]["name"], "kind": kind, **empty, "sign": "+-?"[number % 3]})
    nodes.append({"name": "unexplained", "group": "unexplained", "tier": "unexplained", "members": []})
    nodes.append({"name": target, "group": "target", "tier": "target", "members": [target]})
    nothing = "No cause found: 412 effective samples; an effect above 8 % of the variance would have been seen."
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
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows], schema=SCHEMAS["contributions"])
    write_table(table, folder / graph["scope"] / "contributions.parquet", "contributions")
    write_json(graph, folder / graph["scope"] / "graph.json", "graph")
    causes = [row["feature"] for row in rows if row["feature"] != "unexplained"]
    ends = {"change_percent": -20.0, "change_low": -28.0, "change_high": -12.0, "verdict": "supported", "reason": None}
    whatif = [{"feature": name, "from": "as it was (median 3)", "to": "none"} | ends for name in causes[:2]]
    refused = dict.fromkeys(("change_percent", "change_low", "change_high")) | {"verdict": "refused", "reason": "refused: never observed"}
    whatif += [{"feature": name, "from": "as it was", "to": "none"} | refused for name in causes[2:3]]
    said = {"asked": "a smaller grid", "sentence": "A smaller grid (grid size: 64) would cut the mean absolute deviation by 20 % [12, 28]."}
    whatif += [{"feature": name, "from": "as it was", "to": "64"} | ends | said for name in causes[:1]]
    whatif += [{"feature": name, "from": "as it was", "to": "9"} | refused | {"asked": "a tiny grid"} for name in causes[:1]]
    write_table(pa.Table.from_pylist(whatif, schema=SCHEMAS["whatif"]), folder / graph["scope"] / "whatif.parquet", "whatif")


def write_rows(folder, kernels, rows=1200, seed=4, features=FEATURES):
    """`kept` and `features` of the same launches."""
    rng = np.random.default_rng(seed)
    ids = kernels.column("kernel").to_pylist()
    n = rows if ids else 0
    base = {
        "rank": pa.array(rng.integers(0, 4, n), pa.uint32()),
        "bin": pa.array(np.sort(rng.integers(0, 60, n)), pa.int64()),
        "launch": pa.array(np.arange(n), pa.int64()),
        "start_ns": pa.array(np.sort(rng.integers(0, 600 * MS, n)), pa.int64()),
        "kernel": pa.array([ids[i] for i in rng.integers(0, len(ids), n)] if n else [], pa.string()),
        "configuration": pa.array(rng.integers(0, 5, n), pa.uint32()),
    }
    values, fields = {}, []
    for name, tier, group, unit in features:
        if name == "transfer_copy_kind":
            column = pa.array([[1, 2, 8, None][i] for i in rng.integers(0, 4, n)], pa.uint8())
        elif name == "device":
            column = pa.array(rng.integers(0, 2, n), pa.uint16())
        elif unit == "bytes":
            column = pa.array(rng.lognormal(14, 2, n))
        else:
            column = pa.array(rng.lognormal(3, 1, n))
        values[name] = column
        fields.append(field(name, column.type, tier=tier, group=group, unit=unit))
    effect = np.asarray(values[features[0][0]]) if n else np.zeros(0)
    target = np.abs(rng.normal(0, 4000, n)) * (1 + 3 * (effect > np.median(effect) if n else effect))
    kept = np.asarray(base["bin"]) >= 30
    tail = {
        "target": pa.array(target),
        "signed_deviation": pa.array(target * np.where(rng.random(n) < 0.5, -1, 1)),
        "configuration_mean": pa.array(np.full(n, 5e4)),
        "configuration_std": pa.array(np.full(n, 4e3)),
        "kept": pa.array(kept),
        "inclusion_probability": pa.array(np.where(kept, 1.0, 0.3)),
    }
    write_table(pa.table({**base, **tail}), folder / "kept.parquet", "kept")
    every = pa.table({**base, **tail, **values})
    write_table(every, folder / "features.parquet", "features", [*(f for f in every.schema if f.name not in values), *fields])


def analyses(possible):
    names = ("kernel_variability", "memory_stall", "counter_deviation", "causes", "time_line", "queue_delay", "ranges", "overlap")
    states = {name: {"possible": possible, "why": None if possible else "no launches were read"} for name in names}
    return states | {"ranges": {"possible": False, "why": "no export has ranges"}}


def capabilities(export, rank, dataset="demo", status="read", kind="trace", launches=24_000, first=0, values=None):
    refused = status == "refused"
    rows = "launches" if kind == "trace" else "counters"
    error = {
        "source": f"{export}.sqlite",
        "found": "the file holds 0 bytes",
        "expected": "a database written by nsys export",
        "advice": "Export it again.",
    }
    return {
        "export": export,
        "source": f"runs/{dataset}/{export}.sqlite",
        "format": "nsys",
        "format_version": "3.16.1",
        "sha256": "ab" * 32,
        "bytes": 1_234_567,
        "status": status,
        "error": error if refused else None,
        "kind": "none" if refused else kind,
        "ranks": [] if refused else [rank],
        "ranks_from": "sheet",
        "streams": {},
        "node": None,
        "tables": {} if refused else {rows: launches, "transfers": 900, "kernels": 6, "devices": 1},
        "rows_in": {},
        "time": None
        if refused or kind != "trace"
        else {"first_ns": first, "last_ns": first + 600 * MS, "session_start_ns": 1_718_000_000_000_000_000, "has_start": True},
        "values": values or {},
        "analyses": analyses(not refused),
        "issues": [],
    }


def write_dataset(
    root,
    dataset="demo",
    targets=("kernel_variability",),
    ranks=4,
    bins=60,
    names=NAMES,
    scopes=3,
    causes=6,
    refused=(),
    measured=False,
    **kept,
):
    """Write everything that the figures and the overview of one dataset read; returns its folder."""
    folder = Path(root) / dataset
    if measured:
        write_measured(folder, dataset, ranks)
    exports, issues = [], []
    for rank in range(ranks):
        facts = capabilities(str(rank), rank, dataset, "refused" if rank in refused else "read")
        write_json(facts, folder / "tables" / str(rank) / "capabilities.json", "capabilities")
        exports.append({key: facts[key] for key in ("export", "source", "status", "kind", "ranks", "error", "sha256")} | {"rows": 24_000})
        if rank in refused:
            detail = "the file holds 0 bytes; expected a database written by nsys export. Export it again."
            issues.append(
                {"export": str(rank), "kind": "refused", "severity": "blocked", "count": 1, "detail": detail, "rules_out": ["causes"]}
            )
    issues.append(
        {"export": "0", "kind": "assumed_rank", "severity": "info", "count": 1, "detail": "nothing says which rank", "rules_out": []}
    )
    possible = len(refused) < ranks
    quality = {
        "dataset": dataset,
        "status": "blocked" if not possible else "caution" if refused else "ok",
        "exports": exports,
        "issues": issues,
        "analyses": analyses(possible),
    }
    write_json(quality, folder / "quality.json", "quality")
    shifts = {str(rank): {"shift_ns": 0, "ranks": [rank]} for rank in range(ranks)}
    clocks = {
        "dataset": dataset,
        "method": "session_start",
        "exports": shifts,
        "residual_ns": None,
        "reason": "every export knows its start",
    }
    write_json(clocks, folder / "clocks.json", "clocks")
    for target in targets:
        place = folder / target
        kernels = kernels_table(names if possible else ())
        write_table(kernels, place / "kernels.parquet", "kernel_summary", metadata=FACTS)
        table = bins_table(ranks, bins if possible else 0, **kept)
        write_table(table, place / "bins.parquet", "bins", metadata=FACTS)
        write_table(ranking_table(table), place / "ranking.parquet", "ranking")
        write_rows(place, kernels)
        graph = graph_of(dataset, target, causes=causes if possible else 0)
        write_scope(place / "causal", graph, contribution_rows(causes if possible else 0)[0])
        written = []
        for number, row in enumerate(kernels.to_pylist()[:scopes]):
            some = max(causes - 2 * number, 0)
            scoped = graph_of(dataset, target, row["kernel"], row["name"], some, seed=10 + number)
            write_scope(place / "causal", scoped, contribution_rows(some, 10 + number)[0])
            written.append(row["kernel"])
        write_json({"scopes": written}, place / "causal" / "scopes.json")
    return folder


class Named(list):
    """Files of a job, by place or by name, as Snakemake hands them to a script."""

    def __init__(self, **entries):
        super().__init__(entries.values())
        self.__dict__.update(entries)


def job_of(root, out, datasets=("demo",)):
    """A job with the inputs of every script that draws or sums up, over what `write_dataset` wrote under `root`."""
    root, out = Path(root), Path(out)
    places = sorted(path.parent for name in datasets for path in (root / name).glob("*/kernels.parquet"))

    def each(pattern):
        return [str(path / pattern) for path in places]

    class Job:
        log: ClassVar = [str(out / "log.txt")]
        input = Named(
            quality=[str(root / name / "quality.json") for name in datasets],
            clocks=[str(root / name / "clocks.json") for name in datasets],
            tables=[str(path) for name in datasets for path in sorted((root / name / "tables").iterdir())],
            kernels=each("kernels.parquet"),
            bins=each("bins.parquet"),
            ranking=each("ranking.parquet"),
            scopes=each("causal/scopes.json"),
            contributions=each("causal/dataset/contributions.parquet"),
            findings=str(out / "findings.json"),
            efficiency=[str(path) for name in datasets for path in (root / name).glob("efficiency.json")],
            efficiency_tables=[str(path) for name in datasets for path in (root / name).glob("efficiency.parquet")],
            stragglers=[str(path) for name in datasets for path in (root / name).glob("stragglers.json")],
            comparisons=[str(path) for path in sorted(root.glob("compare/*/comparison.json"))],
        )
        params = Named(config_hash="0123456789abcdef" * 4, settings={"seed": 1, "bins": {"width_us": 10000}, "causes": {"resamples": 20}})
        output = Named(findings=str(out / "findings.json"), page=str(out / "overview.html"))

    out.mkdir(parents=True, exist_ok=True)
    return Job
