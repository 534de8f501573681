"""Tables to kept rows, by three programs that give the same answer: the whole of `bin_launches` for one target, and what
a user would write in polars and in SQL.

The answer: bins, launches, means of eight statistics of the target and two features over the bins; then the kept bins'
rows and the sums of their starts and durations. Ours links transfers besides, and writes all its tables; the others
write the kept rows.
"""

import tempfile
from pathlib import Path

import numpy as np

WIDTH_NS = 10_000_000
FEATURES = ["duration_ns", "queue_ns"]
KEEP_SHARE = 0.1
KEEP_MOST = 1_000_000
STATISTICS = ["min", "max", "mean", "variance", "std", "q1", "median", "q3"]
DECODED = {
    "launches": ["start_ns", "duration_ns", "configuration", "queue_ns", "device"],
    "transfers": ["start_ns", "duration_ns", "device"],
}
"""The columns that binning needs, by table."""
NAMES = ["start_ns", "configuration", "rank", *FEATURES]


def answer(count, statistics, starts, durations):
    """Return what the programs must agree on."""
    means = [f"{np.nanmean(np.asarray(column, float)):.4g}" for column in statistics]
    return [len(count), int(np.sum(count)), *means, len(starts), int(np.sum(starts)), int(np.sum(durations))]


def kept_causeway(path):
    """Run the MPI program on one rank."""
    import pyarrow.parquet as pq

    import causeway.variability.bin_launches  # noqa: F401 - loads the compiled code
    from variability import bin_launches
    from variability_tables import command

    yield
    home = Path(path).parents[2]
    export = Path(path).parent.name
    with tempfile.TemporaryDirectory() as folder:
        options = ["--keep-share", KEEP_SHARE, "--keep-max-rows", KEEP_MOST, "--control-ratio", 0]
        options += ["--control-min-rows", 0, "--features", *FEATURES]
        line = command(home, ["kernel_variability"], [export], options)
        line[line.index("--out") + 1] = folder
        bin_launches.main([str(part) for part in line])
        out = Path(folder) / "kernel_variability"
        bins = pq.read_table(out / "bins.parquet")
        kept = pq.read_table(out / "kept.parquet", columns=["start_ns", "duration_ns"])
    columns = [bins[f"{name}{what}"] for name in ("", *(f"{one}_" for one in FEATURES)) for what in STATISTICS]
    yield answer(bins["count"], columns, kept["start_ns"], kept["duration_ns"])


def kept_decode(path):
    """The yardstick: one decode of the columns that binning needs, of launches and transfers, in one thread."""
    import pyarrow.parquet as pq

    yield
    rows = 0
    for table, columns in DECODED.items():
        file = pq.ParquetFile(Path(path).with_name(f"{table}.parquet"))
        rows += sum(batch.num_rows for batch in file.iter_batches(1 << 16, columns=columns, use_threads=False))
    yield rows


def kept_polars(path):
    """Means of configurations, deviations, bins, their order, and the rows of the first of them."""
    import polars as pl

    yield
    rows = pl.scan_parquet(path).select(NAMES)
    means = rows.group_by("configuration").agg(pl.col("duration_ns").mean().alias("expected"))
    number = ((pl.col("start_ns") - pl.col("start_ns").min()) // WIDTH_NS).alias("bin")
    target = (pl.col("duration_ns") - pl.col("expected")).abs().alias("target")
    rows = rows.join(means, on="configuration").with_columns(number, target)
    parts = []
    for name in ("target", *FEATURES):
        one = pl.col(name)
        found = [one.min(), one.max(), one.mean(), one.var(), one.std()]
        found += [one.quantile(q, "linear") for q in (0.25, 0.5, 0.75)]
        parts += [part.alias(f"{name}_{what}") for part, what in zip(found, STATISTICS, strict=True)]
    bins = rows.group_by("rank", "bin").agg(pl.len().alias("count"), *parts).collect()
    ranked = bins.sort(["target_variance", "rank", "bin"], descending=[True, False, False], nulls_last=True)
    wanted = ranked.head(-(-len(ranked) // 10)).filter(pl.col("count").cum_sum() <= KEEP_MOST)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kept.parquet"
        kept = rows.join(wanted.lazy().select("rank", "bin"), on=["rank", "bin"], how="semi").collect()
        kept.sort("rank", "start_ns").write_parquet(file)
    columns = [bins[f"{name}_{what}"].to_numpy() for name in ("target", *FEATURES) for what in STATISTICS]
    yield answer(bins["count"].to_numpy(), columns, kept["start_ns"].to_numpy(), kept["duration_ns"].to_numpy())


def kept_duckdb(path):
    """The same in SQL: the rows with their bins as a view, the bins as a table."""
    import duckdb

    yield
    parts = []
    for name in ("target", *FEATURES):
        found = [f"{what}({name})" for what in ("min", "max", "avg", "var_samp", "stddev_samp")]
        found += [f"quantile_cont({name}, {q})" for q in (0.25, 0.5, 0.75)]
        parts += [f"{part} AS {name}_{what}" for part, what in zip(found, STATISTICS, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        base = duckdb.connect(config={"temp_directory": folder})
        first = base.execute(f"SELECT min(start_ns) FROM '{path}'").fetchone()[0]
        base.execute(
            f"CREATE TABLE means AS SELECT configuration, avg(duration_ns) AS expected FROM '{path}' GROUP BY ALL"
        )
        base.execute(
            f"CREATE VIEW binned AS SELECT {', '.join(NAMES)}, (start_ns - {first}) // {WIDTH_NS} AS bin,"
            f" abs(duration_ns - expected) AS target FROM '{path}' JOIN means USING (configuration)"
        )
        base.execute(
            f"CREATE TABLE bins AS SELECT rank, bin, count(*) AS count, {', '.join(parts)} FROM binned GROUP BY rank, bin"
        )
        base.execute(
            "CREATE TABLE wanted AS SELECT rank, bin FROM (SELECT rank, bin, row_number() OVER best AS place,"
            " sum(count) OVER best AS so_far FROM bins WINDOW best AS (ORDER BY target_variance DESC, rank, bin))"
            f" WHERE place <= (SELECT ceil({KEEP_SHARE} * count(*)) FROM bins) AND so_far <= {KEEP_MOST}"
        )
        base.execute(
            f"COPY (SELECT * FROM binned SEMI JOIN wanted USING (rank, bin) ORDER BY rank, start_ns)"
            f" TO '{folder}/kept.parquet'"
        )
        kept = base.execute(f"SELECT start_ns, duration_ns FROM '{folder}/kept.parquet'").fetchnumpy()
        bins = base.execute("SELECT * FROM bins").fetchnumpy()
        base.close()
    columns = [bins[f"{name}_{what}"] for name in ("target", *FEATURES) for what in STATISTICS]
    yield answer(bins["count"], columns, kept["start_ns"], kept["duration_ns"])


METHODS = {work.__name__: work for work in (kept_causeway, kept_decode, kept_polars, kept_duckdb)}
