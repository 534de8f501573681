"""Made-up efficiency and stragglers of a dataset, consistent in themselves and fit for their schemas."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, write_json, write_table

MS = 1_000_000
E = 600 * MS
RATIOS = (
    "parallel_efficiency",
    "load_balance",
    "communication_efficiency",
    "orchestration_efficiency",
    "hidden_copy_share",
)
STATES = "busy kernel compute communication memory graph exposed_communication exposed_memory overlap".split()
REGION = "step '; DROP TABLE kernels; -- <b>"


def tree(kernel_ns, elapsed=E, devices=1):
    ratios = dict(zip(RATIOS, (kernel_ns / (elapsed * devices), 0.97, None, 0.9123, 0.25), strict=True))
    return ratios | {
        "elapsed_ns": elapsed,
        "n_devices": devices,
        "kernel_ns": kernel_ns,
        "kernel_max_ns": kernel_ns,
        "active_max_ns": kernel_ns,
        "copy_ns": 4 * MS,
        "hidden_copy_ns": MS,
    }


def flavour(ranks, busy):
    return tree(sum(busy), E, ranks) | {
        "nodes": {"node0": tree(sum(busy), E, ranks)},
        "ranks": {str(rank): tree(time) for rank, time in enumerate(busy)},
        "devices": {f"{rank}/0": tree(time) for rank, time in enumerate(busy)},
        "regions": {REGION: tree(sum(busy) // 2, E // 2, ranks)},
    }


def breakdown(time, rank):
    times = dict.fromkeys((f"{state}_ns" for state in STATES), 0)
    times |= {"busy_ns": time, "kernel_ns": time - 9 * MS, "compute_ns": time - 20 * MS, "exposed_memory_ns": 9 * MS}
    idle = E - time
    return times | {
        "elapsed_ns": E,
        "idle_ns": idle,
        "non_compute_ns": 20 * MS,
        "overlap_ratio": None,
    }


def efficiency_of(dataset, ranks, origin=0):
    """An `efficiency.json`: rank 0 idles most."""
    busy = [E - (60 + 20 * (rank == 0)) * MS for rank in range(ranks)]
    parts = {
        "useful": sum(busy) - 20 * MS * ranks,
        "communication": 7 * MS * ranks,
        "transfers": 9 * MS,
        "outside": 13 * MS + 1,
    }
    parts["orchestration"] = E * ranks - sum(parts.values())
    path = {
        "launches": 24_000,
        "kernel_ns": sum(busy),
        "queued": 0,
        "queue_ns": 0,
        "mean_queue_length": None,
    }
    copies = [
        {
            "rank": rank,
            "device": 0,
            "kind": 1,
            "direction": "host to device",
            "copies": 9,
            "duration_ns": 9 * MS,
            "sized": 9,
            "bytes": 10**8 + rank,
            "sized_ns": 9 * MS,
            "gb_per_s": 11.1,
            "bus": "PCIe 5.0 x16",
            "limit_gb_per_s": 63.0,
            "share_of_limit": 0.17,
        }
        for rank in range(ranks)
    ]
    host = {"possible": True, "why": "no export holds MPI calls: there is no MPI tree", "parallel_efficiency": 0.96}
    host |= {"device_offload_efficiency": 0.5, "mpi_parallel_efficiency": None}
    return {
        "dataset": dataset,
        "why": None,
        "elapsed_ns": E,
        "origin_ns": origin,
        "bin_ns": 10 * MS,
        "notes": ["graphs count as compute 2 times"],
        "clocks": {"method": "one_export", "residual_ns": None, "reason": "one export of 4 ranks"},
        "host": host,
        **{name: flavour(ranks, busy) for name in ("device", "talp", "comm_aware")},
        "waterfall_ns": parts,
        "breakdown": {f"{rank}/0": breakdown(time, rank) for rank, time in enumerate(busy)},
        "launch_path": path,
        "copies": copies,
        "shared": [
            {
                "devices": {},
                "elapsed_ns": E,
                "kernel_ns": 5,
                "busy_ns": 6,
                "at_once_ns": 7 * MS,
                "parallel_efficiency": None,
            }
        ],
    }


def efficiency_table(document, bins=60):
    """The rows of its table: dataset, region, and bins of each rank."""
    rows = [
        {"level": "dataset"} | document["device"],
        {"level": "region", "region": REGION} | document["device"]["regions"][REGION],
    ]
    for row in rows:
        row |= {f"{name}_{ratio}": row[ratio] for name in ("device", "talp", "comm_aware") for ratio in RATIOS}
    rng = np.random.default_rng(5)
    for number in range(bins):
        place = {"level": "bin", "bin": number, "start_ns": number * 10 * MS, "elapsed_ns": 10 * MS}
        busy = rng.integers(8 * MS, 10 * MS, document["device"]["n_devices"]).tolist()
        rows += [place | {"rank": None, "n_devices": len(busy), "kernel_ns": sum(busy)}]
        rows += [place | {"rank": rank, "n_devices": 1, "kernel_ns": time} for rank, time in enumerate(busy)]
    schema = SCHEMAS["efficiency"]
    return pa.Table.from_pylist(
        [{field.name: row.get(field.name, None if field.nullable else 0) for field in schema} for row in rows],
        schema=schema,
    )


def stragglers_of(dataset, ranks):
    """A `stragglers.json`: the last rank is late and why, one rank now and then; a second communicator in which
    nobody is.
    """
    entries = [
        {"rank": rank, "share": 0.0, "collectives": 0, "last_share": 0.0, "last_collectives": 0, "pattern": "none"}
        | {"waiting_for_it_ns": 0, "alone_ns": 0, "own_wait_ns": 5}
        for rank in range(ranks)
    ]
    clock = {"mean_hz": 1.2e9, "others_hz": 1.5e9, "slower": True, "metric": "sm_clock_hz"}
    kernels = [{"kernel": "gemm<b>", "launches": 9, "mean_ns": 1200.5, "others_mean_ns": 1000.25, "excess_ns": 1800}]
    kernels[0] |= {"same_configuration_ns": 0, "configurations": []}
    why = {"cause": "compute", "excess_compute_ns": 300_000, "excess_idle_ns": 0, "kernels": kernels, "clock": clock}
    why |= {"excess_copies_ns": 0, "only_here": [{"kernel": "own<i>", "launches": 1, "total_ns": 9}]}
    entries[-1] |= {"share": 0.75, "collectives": 75, "pattern": "persistent", "waiting_for_it_ns": 41 * MS, "why": why}
    entries[-1] |= {"last_share": 0.875, "last_collectives": 87}
    host = why | {"cause": "host", "excess_idle_ns": 123_456, "kernels": [], "clock": None}
    entries[0] |= {"share": 0.04, "collectives": 4, "pattern": "transient", "waiting_for_it_ns": 3 * MS, "why": host}
    entries[0] |= {"last_share": 0.13, "last_collectives": 13}
    sums = {
        "threshold_ns": 12_345,
        "residual_ns": 678,
        "waiting_ns": 50 * MS,
        "transfer_ns": MS,
        "excess_transfer_ns": 0,
    }
    one = {
        "communicator": "'; DROP TABLE x",
        "n_ranks": ranks,
        "collectives": 100,
        "sized": 100,
        "verdict": "straggler",
        "reason": "rank 3 is last",
        "late_together": [],
        **sums,
    }
    calm = [entry | {"pattern": "none", "share": 0.0, "waiting_for_it_ns": 0} for entry in entries]
    for entry in calm:
        entry.pop("why", None)
    two = one | {"communicator": None, "verdict": "inconclusive", "reason": "nobody", "waiting_ns": 0, "ranks": calm}
    matrix = [[0] * ranks for _ in range(ranks)]
    share = {"value": 0.001, "low": 0.0005, "high": 0.0015}
    shares = {
        "configuration": {"value": 0.98, "low": 0.97, "high": 0.99},
        "device": dict.fromkeys(share),
        "rest": share | {"value": 0.017},
    }
    shares |= dict.fromkeys(("run", "node", "rank", "time"), share)
    variance = {"launches": 24_000, "configurations": 22, "seed": 1, "shares": shares}
    variance |= {"within": {key: share for key, share in shares.items() if key != "configuration"}}
    return {
        "dataset": dataset,
        "groups": [one | {"ranks": entries, "matrix_ns": matrix}, two | {"matrix_ns": matrix}],
        "notes": ["3 collectives could not be matched"],
        "clocks": {"method": "collective_ends", "residual_ns": 678, "reason": "ends"},
        "variance": variance,
    }


def write_measured(folder, dataset, ranks):
    """Write `efficiency.json`, `efficiency.parquet` and `stragglers.json` of a dataset."""
    document = efficiency_of(dataset, ranks)
    folder = Path(folder)
    write_json(document, folder / "efficiency.json", "efficiency")
    write_table(efficiency_table(document), folder / "efficiency.parquet", "efficiency")
    write_json(stragglers_of(dataset, ranks), folder / "stragglers.json", "stragglers")
