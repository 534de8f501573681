"""Series of runs, strong or weak scaling: computation scalability and global efficiency against the smallest run."""

from collections.abc import Mapping, Sequence

from causeway.core.vocabulary import FLAVOUR_NAMES, PARALLEL
from causeway.efficiency.trees.trees import scalability


def measure_series(series: Mapping[str, Sequence[str]], documents: Mapping[str, Mapping]) -> dict:
    """Return `series.json`.

    Parameters
    ----------
    series : mapping
        Datasets by series, whose name is `strong:NAME` or `weak:NAME`.
    documents : mapping
        `efficiency.json` by dataset.

    Returns
    -------
    dict
        Per series its scaling, and its runs in order of devices; the first one is the reference. Runs without an
        efficiency stand apart, with the reason.
    """
    found = {}
    for name, datasets in sorted(series.items()):
        kind = name.split(":")[0]
        measured = [dataset for dataset in datasets if documents[dataset]["why"] is None]
        order = sorted(
            measured, key=lambda dataset: documents[dataset]["device"]["n_devices"]
        )  # stable: else as in the sheet
        runs = []
        for dataset in order:
            run = {"dataset": dataset, "n_devices": documents[dataset]["device"]["n_devices"]}
            for flavour in FLAVOUR_NAMES:
                reference = documents[order[0]][flavour]
                tree = documents[dataset][flavour]
                run[flavour] = {key: tree[key] for key in (PARALLEL, "kernel_ns", "elapsed_ns")}
                run[flavour] |= scalability(reference, tree, weak=kind == "weak")
            runs.append(run)
        left_out = [
            {"dataset": dataset, "why": documents[dataset]["why"]} for dataset in datasets if dataset not in measured
        ]
        reference = order[0] if order else None
        found[name] = {"scaling": kind, "reference": reference, "runs": runs, "not_measured": left_out}
    return {"series": found}
