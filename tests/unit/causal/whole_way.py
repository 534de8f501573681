"""The way from exports to corrected graphs, stage by stage in this process, as the rules run it."""

from types import SimpleNamespace

from causal import assemble_features, discover_causes, discover_dataset_causes
from causeway.causal.data.outcome_file import read_outcomes
from causeway.causal.data.scopes import kernel_names, kernels_that_matter, totals_of
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document, table_rows
from causeway.causal.report.kernel_support import borne_out
from causeway.efficiency.steps.find_steps import find_steps
from causeway.readers.normalise import normalise
from ingest import align_clocks, match_telemetry
from variability import bin_launches

CAUSES = {
    "batches": 1,
    "kernels_share": 0.999,
    "kernels_count": 20,
    "max_rows": 50000,
    "resamples": 20,
    "context": "boss",
    "context_resamples": 0,
    "what_if": [],
}


def tables_of(out, files, one_each, telemetry=()):
    """Normalise exports, each a rank of its own if wanted, align their clocks, match files of telemetry; return their
    names.
    """
    names = [str(i) for i in range(len(files))]
    for i, file in enumerate(files):
        rank = i if one_each else None
        normalise(
            file,
            out / "tables" / names[i],
            export=names[i],
            source=file.name,
            rank=rank,
            position=i,
            form="auto",
            node=None,
            targets=("y",),
        )
    folders = [str(out / "tables" / name) for name in names]
    align_clocks.main(
        SimpleNamespace(
            input=SimpleNamespace(tables=folders),
            output=SimpleNamespace(clocks=out / "clocks.json"),
            wildcards=SimpleNamespace(dataset="d"),
            log=[out / "log"],
        )
    )
    if telemetry:
        match_telemetry.main(
            SimpleNamespace(
                input=SimpleNamespace(tables=folders, clocks=out / "clocks.json"),
                output=SimpleNamespace(telemetry=out / "telemetry.parquet", document=out / "telemetry.json"),
                params=SimpleNamespace(rows=[{"source": path.name, "path": path} for path in telemetry], nodes={}),
                wildcards=SimpleNamespace(dataset="d"),
                log=[out / "log"],
            )
        )
    return names


def feature_words(out, names, target, *, telemetry=False, steps=None, runs=None):
    """Return the command line of `assemble_features` for a folder of results."""
    options = {
        "--ranks": [1],
        "--dataset": ["d"],
        "--tables": [out / "tables"],
        "--exports": names,
        "--runs": [(runs or {}).get(name) or "" for name in names],
        "--clocks": [out / "clocks.json"],
        "--kept": [out / target / "kept.parquet"],
        "--out": [out / target / "features.parquet"],
        "--telemetry": [out / "telemetry.parquet"] if telemetry else [],
        "--steps": [steps] if steps else [],
    }
    return [str(word) for option, values in options.items() for word in (option, *values)]


def binned(out, files, target, telemetry=()):
    """Bin exports by a target into a folder of results; return their names and the folder of the target's tables."""
    names = tables_of(out, files, one_each=len(files) > 1, telemetry=telemetry)
    options = {
        "--ranks": "1",
        "--dataset": "d",
        "--tables": out / "tables",
        "--clocks": out / "clocks.json",
        "--out": out,
    }
    words = [str(word) for option in options.items() for word in option]
    bin_launches.main([*words, "--exports", *names, "--targets", target])
    return names, out / target


def documents_of(folder, files, target, whole=False, telemetry=(), runs=None, steps=False, **causes):
    """Return the documents of the kernels that matter, and the whole dataset's behind them if wanted: `graph` and the
    rows of each table. With `steps`, these are looked for, too, and are among the features.
    """
    out = folder / "results"
    names, root = binned(out, files, target, telemetry)
    paths = {"features": root / "features.parquet", "kernels": root / "kernels.parquet", "kept": root / "kept.parquet"}
    job = SimpleNamespace(
        input=SimpleNamespace(
            **paths,
        ),
        output=SimpleNamespace(
            features=paths["features"],
            drafts=root / "causal" / "drafts" / "0.json",
            draft=root / "causal" / "drafts" / "dataset.json",
        ),
        params=SimpleNamespace(causes=CAUSES | causes, seed=1),
        wildcards=SimpleNamespace(dataset="d", target=target, batch="0"),
        log=[folder / "log"],
    )
    table = out / "steps.parquet" if steps else None
    if steps:
        folders = [out / "tables" / name for name in names]
        find_steps("d", folders, out / "clocks.json", 1, out / "steps.json", table, out / "step_causes.parquet")
    assemble_features.main(feature_words(out, names, target, telemetry=bool(telemetry), runs=runs, steps=table))
    discover_causes.main(job)
    outcomes = read_outcomes(job.output.drafts)
    of_dataset = None
    if whole or not outcomes:  # the outcome of an only kernel is the dataset's
        discover_dataset_causes.main(job)
        of_dataset, *only = read_outcomes(job.output.draft)
        outcomes = (*outcomes, *only)
    corrected = correct(outcomes)
    if whole:
        matter = kernels_that_matter(paths["kernels"], CAUSES["kernels_share"], CAUSES["kernels_count"])
        shares = {kernel.id: kernel.share for kernel in matter}
        collectives = totals_of(paths["kernels"]).collectives
        names = kernel_names(paths["kernels"])
        corrected += [borne_out(correct([of_dataset])[0], corrected, shares, collectives, names)]
    return [{"graph": graph_document(outcome), **table_rows(outcome)} for outcome in corrected]


def causes_of(graph):
    """Return the causes of a graph's target with their signs."""
    edges = [
        edge for edge in graph["edges"] if edge["target"] == graph["target_node"] and edge["source"] != "unexplained"
    ]
    return {edge["source"]: edge["sign"] for edge in edges}
