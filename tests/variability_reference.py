"""The plain answer: what the program must find, with pandas, fractions and no thought of speed. It shares no code
with the program.
"""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

STATISTICS = ["min", "max", "mean", "variance", "std", "q1", "median", "q3"]


def read(folder, name):
    return pq.read_table(folder / f"{name}.parquet").to_pandas()


def trace_rows(folder, exports):
    """Return all launches on one time line, with the key of their configuration."""
    shifts = json.loads((folder / "clocks.json").read_text())["exports"]
    parts = []
    for export in exports:
        own = folder / "tables" / export
        launches = read(own, "launches")
        launches["launch"] = np.arange(len(launches))
        launches["raw_ns"] = launches.start_ns
        launches["start_ns"] += shifts[export]["shift_ns"]
        kernels = read(own, "kernels").set_index("kernel")
        shapes = read(own, "configurations").set_index("configuration")
        names = kernels.name.loc[shapes.kernel.to_numpy()].to_numpy()
        lines = zip(shapes.index, names, shapes.drop(columns="kernel").to_numpy(), strict=True)
        keys = {number: (name, *map(str, row)) for number, name, row in lines}
        launches["key"] = launches.configuration.map(keys)
        launches["export"] = export
        parts.append(launches)
    return pd.concat(parts, ignore_index=True)


def exact_mean(values):
    return float(sum(Fraction(value) for value in values) / len(values))


def with_deviation(rows, value, per_rank=False):
    """Add target and signed deviation of a column from its mean per configuration."""
    groups = rows.groupby(["key", "rank"] if per_rank else "key")[value]
    means = groups.transform(lambda values: exact_mean(values.tolist()))
    return rows.assign(value=rows[value], signed=rows[value] - means, target=(rows[value] - means).abs())


def linked_transfer(launch, transfers, window_ns):
    """Return the row of the transfer linked to a launch (raw clock), or None: the definition, one launch at a time.

    `transfers` are the rows, starts and ends of those on its rank and device, in the order of rows.
    """
    row, t_start, t_end = transfers
    start = launch.raw_ns
    end = launch.raw_ns + launch.duration_ns
    overlap = np.minimum(t_end, end) - np.maximum(t_start, start)
    if (overlap > 0).any():
        return row[overlap.argmax()]
    near = (t_end <= start) & (start - t_end <= window_ns)
    return row[near][t_end[near].argmax()] if near.any() else None


def with_stall(rows, folder, window_ns):
    """Return the launches that have a linked transfer, with target and signed deviation of the stall."""
    parts = []
    for export, own in rows.groupby("export", sort=False):
        path = folder / "tables" / export / "transfers.parquet"
        if not path.exists():
            continue
        transfers = pq.read_table(path).to_pandas()
        lanes = {
            lane: (here.index.to_numpy(), here.start_ns.to_numpy(), (here.start_ns + here.duration_ns).to_numpy())
            for lane, here in transfers.groupby(["rank", "device"])
        }
        none = (np.empty(0, int),) * 3
        facts = own[["rank", "device", "raw_ns", "duration_ns"]].itertuples(index=False)
        links = [linked_transfer(launch, lanes.get((launch.rank, launch.device), none), window_ns) for launch in facts]
        own = own.assign(transfer=links).dropna(subset="transfer")
        taken = transfers.loc[own.transfer.astype(int)]
        for name in ("start_ns", "duration_ns", "bytes", "copy_kind"):
            own[f"transfer_{name}"] = taken[name].to_numpy()
        own["value"] = (own.duration_ns - own.transfer_duration_ns).abs()
        parts.append(own)
    if not parts:
        return rows.iloc[:0].assign(value=[], target=[], signed=[])
    found = pd.concat(parts, ignore_index=True)
    means = found.groupby("key")["value"].transform(lambda values: exact_mean(values.tolist()))
    return found.assign(target=found.value.astype(float), signed=found.value - means)


def bins(rows, first, width, features=()):
    """Return the table of bins by groupby: the same columns as the program's."""
    rows = rows.assign(bin=(rows.position - first) // width)
    pieces = []
    for column in ("target", *features):
        groups = rows.groupby(["rank", "bin"])[column]
        quantiles = pd.concat([groups.quantile(share) for share in (0.25, 0.5, 0.75)], axis=1)
        piece = pd.concat(
            [groups.min(), groups.max(), groups.mean(), groups.var(ddof=1), groups.std(ddof=1), quantiles], axis=1
        )
        piece.columns = STATISTICS if column == "target" else [f"{column}_{name}" for name in STATISTICS]
        pieces.append(piece)
    counts = rows.groupby(["rank", "bin"]).size().rename("count")
    return pd.concat([counts, *pieces], axis=1).reset_index()


def assert_same_bins(found, expected, features=()):
    """Count, min and max exactly; the rest to 1e-12."""
    assert found["rank"].tolist() == expected["rank"].tolist()
    assert found["bin"].tolist() == expected["bin"].tolist()
    assert found["count"].tolist() == expected["count"].tolist()
    for prefix in ("", *(f"{name}_" for name in features)):
        for name in STATISTICS:
            mine = found[prefix + name].to_numpy(float)
            theirs = expected[prefix + name].to_numpy(float)
            if name in ("min", "max"):
                np.testing.assert_array_equal(mine, theirs, err_msg=prefix + name)
            else:
                # pandas' own variance of nearly equal values carries the rounding of its mean
                scale = np.nanmax(np.abs(expected[f"{prefix}max"].to_numpy(float)), initial=0.0)
                power = 2 if name == "variance" else 1
                np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13 * scale**power, err_msg=prefix + name)
