"""Made-up bins, kernels and rows of a target, in the stable layout."""

import numpy as np
import pyarrow as pa
from causal_samples import FEATURES

from causeway.core.tables import SCHEMAS, write_table

MS = 1_000_000
HOSTILE = (
    "</title><script>document.title='owned'</script>'; DROP TABLE kernels; -- $\\frac{a}$ &amp; \x00\u202e"
    + "<b onload=x>" * 9000
)
NAMES = (
    "void stencil::advance<4, double>(double const*, double*, int, int)",
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>"
        " >(int, float)"
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul>"
        " >(int, float)"
    ),
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "reduce_final",
)
FACTS = {"value_unit": "ns", "bin_width": "10000000", "bin_unit": "ns"}


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
        "inclusion_probability": [
            1.0 if place[i] < kept else 0.33 if place[i] % 3 == 0 else None for i in range(len(scores))
        ],
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
                "variance_between": number / 40 if launches > 1 else None,
                "target_sum": float(shares[number] * 9.4e9),
                "target_share": float(shares[number]),
                "histogram": [int(c) for c in spread / spread.sum() * launches],
                "timeline": [None if 20 <= i < 27 else float(v) for i, v in enumerate(line)],
            }
        )
    facts = {f"causeway.{key}": value for key, value in FACTS.items()}
    return pa.Table.from_pylist(rows, schema=SCHEMAS["kernel_summary"].with_metadata(facts))


def write_rows(folder, kernels, rows=1200, seed=4, features=FEATURES):
    """`kept` and `features` of the same launches; for the memory stall with the copy of three in four of them."""
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
    values = {}
    fields = []
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
    copies = {}
    if folder.name == "memory_stall":
        tail["target"] = pa.array(np.round(target))
        lasts = rng.integers(1000, 90_000, n)
        for name, column in (("transfer_duration_ns", lasts), ("exposed_transfer_ns", rng.integers(0, lasts + 1))):
            copies[name] = pa.array(column, pa.int64(), mask=np.arange(n) % 4 == 3)
    extra = [pa.field(name, pa.int64(), metadata={"unit": "ns"}) for name in copies]
    write_table(pa.table({**base, **tail, **copies}), folder / "kept.parquet", "kept", extra)
    every = pa.table({**base, **tail, **values})
    write_table(
        every, folder / "features.parquet", "features", [*(f for f in every.schema if f.name not in values), *fields]
    )
