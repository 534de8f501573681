"""The way from exports to corrected graphs, stage by stage in this process, as the rules run it."""

from types import SimpleNamespace

from causeway.causal.data.features import assemble_target
from causeway.causal.data.outcome import Outcome
from causeway.causal.data.scopes import kernel_names, row_blocks, totals_of
from causeway.causal.report.across_kernels import borne_out, correct
from causeway.causal.report.documents import graph_document, table_rows
from causeway.causal.search_causes import (
    CauseSearch,
    packed_features,
    read_outcomes,
    search_dataset,
    search_kernel,
    write_outcomes,
)
from causeway.efficiency.steps.find_steps import find_steps
from causeway.readers.normalise import normalise
from ingest import align_clocks
from variability import bin_launches

CAUSES = {
    "batches": 1,
    "kernels_share": 0.999,
    "kernels_count": 20,
    "max_rows": 50000,
    "columns": [],
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
            input=SimpleNamespace(tables=folders, clock_tables=folders, telemetry=[], files=telemetry, lib=[]),
            output=SimpleNamespace(
                clocks=out / "clocks.json",
                quality=out / "quality.json",
                telemetry=out / "telemetry.parquet",
                document=out / "telemetry.json",
            ),
            params=SimpleNamespace(telemetry=[{"source": path.name, "path": path} for path in telemetry], nodes={}),
            wildcards=SimpleNamespace(dataset="d"),
            log=[out / "log"],
        )
    )
    return names


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


def outcomes_of(search, whole=False):
    """Return the outcomes of the kernels that matter, not corrected, and the dataset's; None for this one where it is
    neither asked for nor that of an only kernel. They went through a file, as those of a run do.
    """
    blocks = row_blocks(search.features)
    kernels = [] if search.alone() else search.chosen()
    packed = packed_features(search, blocks, kernels)
    outcomes = [kept(search_kernel(search, packed, kernel)[0], search)[0] for kernel in kernels]
    if not whole and outcomes:
        return outcomes, None
    of_dataset, *only = kept(search_dataset(search, blocks)[0], search)
    return [*outcomes, *only], of_dataset


def kept(outcomes, search):
    """Return outcomes as their file holds them."""
    file = search.folder / "draft.json"
    write_outcomes([outcomes] if isinstance(outcomes, Outcome) else outcomes, file)
    return read_outcomes(file)


def documents_of(folder, files, target, whole=False, telemetry=(), runs=None, steps=False, **causes):
    """Return the documents of the kernels that matter, and the whole dataset's behind them if wanted: `graph` and the
    rows of each table. With `steps`, these are looked for, too, and are among the features.
    """
    out = folder / "results"
    names, root = binned(out, files, target, telemetry)
    table = [out / "steps.parquet"] if steps else []
    folders = [out / "tables" / name for name in names]
    clocks = out / "clocks.json"
    if steps:
        find_steps("d", folders, clocks, 1, out / "steps.json", *table, out / "step_causes.parquet")
    telemetry_table = [out / "telemetry.parquet"] if telemetry else []
    assemble_target(root, folders, clocks, nodes={}, runs=runs or {}, telemetry=telemetry_table, steps=table)
    search = CauseSearch(dataset="d", folder=root, causes=CAUSES | causes, seed=1)
    outcomes, of_dataset = outcomes_of(search, whole)
    corrected = correct(outcomes)
    if whole:
        totals = totals_of(search.kernels)
        time = {kernel: own for kernel, own in totals.time.items() if kernel not in totals.collectives}
        shares = {kernel.id: kernel.share for kernel in search.chosen()}
        corrected += [borne_out(correct([of_dataset])[0], corrected, shares, time, kernel_names(search.kernels))]
    return [{"graph": graph_document(outcome), **table_rows(outcome)} for outcome in corrected]


def causes_of(graph):
    """Return the causes of a graph's target with their signs."""
    edges = [
        edge for edge in graph["edges"] if edge["target"] == graph["target_node"] and edge["source"] != "unexplained"
    ]
    return {edge["source"]: edge["sign"] for edge in edges}
