"""Datasets of many exports: a few jobs normalise all of them, each one after the other.

Required: what config.smk and paths.smk set. Sets: BATCHES (the dataset of each such job, and the rows of the sheet that it reads), UNBATCHED (the datasets whose
exports are a job each).
"""

from types import SimpleNamespace

INGEST_JOBS = 12


def batches_of_exports():
    """Return the jobs of the datasets with more than INGEST_JOBS exports: equal numbers of neighbours in the sheet.

    A job costs seconds before it reads a byte and a place in the queue of a cluster, so their number does not grow with
    that of the exports. A reduced dataset is made from tables, not from exports.
    """
    found = []
    for dataset, rows in EXPORTS_OF.items():
        if len(rows) <= INGEST_JOBS or dataset in config["filters"]:
            continue
        edges = [len(rows) * part // INGEST_JOBS for part in range(INGEST_JOBS + 1)]
        found += [(dataset, rows[first:last]) for first, last in zip(edges, edges[1:])]
    return found


BATCHES = batches_of_exports()
BATCHED = {dataset for dataset, _ in BATCHES}
UNBATCHED = [dataset for dataset in DATASETS if dataset not in BATCHED]


def sources_of(dataset, rows):
    """Return the inputs of a batch, each once: exports, or the folders of simulated runs or conversions."""
    return list(dict.fromkeys(export_source(SimpleNamespace(dataset=dataset, export=row.export)) for row in rows))


def settings_of(dataset, rows):
    """Return what a batch is told of each export, by the name of its tables' folder."""
    names = ("source", "rank", "position", "format", "node")
    jobs = {row.export: SimpleNamespace(dataset=dataset, export=row.export) for row in rows}
    return {
        row.export: {name: getattr(row, name) for name in names}
        | {
            "path": export_path(jobs[row.export]),
            "converted": conversion_folder(jobs[row.export]),
            "state": export_state(jobs[row.export]),
        }
        for row in rows
    }
