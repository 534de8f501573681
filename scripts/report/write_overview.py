"""The report of a run: findings, stall reasons, explorers, the overview, and what was made of what."""

import json
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.files.json_documents import SCHEMA_FOLDER
from causeway.core.files.research_object import installed_versions, research_object
from causeway.core.files.whole_files import write_whole
from causeway.core.logs import LOG, failing_clearly
from causeway.core.results import (
    dataset_of,
    read_capabilities,
    read_comparisons,
    read_rows_of_run,
    read_searches,
    tables_by_target,
)
from causeway.core.tables import read_json, read_table, write_json
from causeway.findings.collection import ResultFiles, findings_document
from causeway.levels.explorer.explorer import write_explorer
from causeway.numeric.parts import Parts
from causeway.plotting.drawing.citations import interactive_page
from causeway.plotting.drawing.page import svg_of, theme_properties, write
from causeway.plotting.interactive.named_figures import Choice
from causeway.plotting.overview.overview import DatasetView, TargetView, draw_front, draw_overview
from causeway.plotting.pages.interactive_page import INDEX, LIBRARY, write_index
from causeway.plotting.pages.interactive_page import write_page as write_interactive_page

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        given = job.input
        made = job.output
        params = job.params
        with Parts(code=[*given.lib, *given.assets]) as parts:
            parts.do("what was analysed", lambda: write_records(job), *records(job))
            statements = [path for field in fields(ResultFiles) for path in getattr(given, field.name)]
            parts.do("findings", lambda: write_findings(job), [made.findings], statements, params.config_hash)
            for path in made.stalls:
                parts.do(
                    f"stall reasons of {dataset_of(path)}",
                    partial(write_stalls, job, path),
                    [path],
                    of_dataset(job, path),
                )
            for page in made.explorers:
                inputs = [*of_dataset(job, page), made.findings]
                needs = ["findings"]
                parts.do(
                    f"explorer of {dataset_of(page)}",
                    partial(write_explorer_of, job, page),
                    [page],
                    inputs,
                    params.launches,
                    needs,
                )
            for path in given.quality:
                name = dataset_of(path)
                page = Path(made.interactive) / interactive_page(name)
                draw_page = partial(write_interactive, job, path)
                tables = ("features", "contributions", "kernels", "bins", "ranking", "steps", "step_tables")
                inputs = [file for table in tables for file in given[table] if Path(path).parent in Path(file).parents]
                parts.do(f"interactive figures of {name}", draw_page, [page], inputs, params.coordinates)
            index = [Path(made.interactive) / name for name in (INDEX, LIBRARY)]
            pairs = [*given.comparisons, *(Path(path).with_suffix(".parquet") for path in given.comparisons)]
            names = [dataset_of(path) for path in given.quality]
            parts.do("list of interactive figures", lambda: write_list(job), index, pairs, names)
            linked = {*map(str, given.linked)}
            inputs = [*(path for path in given if str(path) not in linked), made.findings, *made.stalls]
            needs = ["findings", *(f"stall reasons of {dataset_of(path)}" for path in made.stalls)]
            choices = [params.shown, params.links, params.levels]
            parts.do("overview", lambda: write_page(job), [made.page, made.front], inputs, choices, needs)


def of_dataset(job, path: str) -> list[str]:
    """Return the inputs of the step that belong to the dataset of a path."""
    home = Path(path).parent
    return [path for path in job.input if home in Path(path).parents]


def tables_of(job, path: str) -> list[Path]:
    """Return the folders of tables of the dataset of a path, in the sheet's order."""
    return [folder for folder in map(Path, job.input.tables) if folder.parents[1] == Path(path).parent]


def records(job) -> tuple:
    """Return what says what was analysed and with which programs: its files, what they are made of, and choices."""
    made = job.output
    params = job.params
    files = [made.listing, made.schemas, made.provenance, made.crate]
    choices = [params.listing, params.settings, params.steps, params.code]
    return files, [*job.input.tables, *job.input.telemetry, *job.input.schemas], choices


def write_records(job) -> None:
    """Write what the configuration has, the schemas of all documents, and what the run was made of."""
    write_json({"schema_version": "1", **json.loads(job.params.listing)}, job.output.listing, "listing")
    for schema in sorted(SCHEMA_FOLDER.glob("*.schema.json")):
        write_whole(Path(job.output.schemas) / schema.name, schema.read_bytes())
    write_provenance(job)


def write_provenance(job) -> None:
    """Write what the run was made of, as a Research Object Crate: versions, configuration, inputs, seeds, steps."""
    exports = [
        read_json(Path(folder) / "capabilities.json") | {"dataset": Path(folder).parts[-3]}
        for folder in job.input.tables
    ]
    documents = [read_json(path) for path in job.input.telemetry]
    telemetry = [(document["dataset"], source) for document in documents for source in document["sources"]]
    settings = json.loads(job.params.settings)
    steps = json.loads(job.params.steps)
    crate = research_object(exports, telemetry, settings, steps, installed_versions(), job.params.code)
    for path in (job.output.provenance, job.output.crate):
        write_json(crate, path, "provenance")


def write_findings(job) -> None:
    """Write what the results claim, ranked by what it is worth."""
    files = ResultFiles(**{field.name: getattr(job.input, field.name) for field in fields(ResultFiles)})
    document = findings_document(files, job.params.config_hash)
    dropped = sum(entry["count"] for entry in document["dropped"])
    LOG.info("findings: %d; statements left out: %d", len(document["findings"]), dropped)
    write_json(document, job.output.findings, "findings")


def write_stalls(job, path: str) -> None:
    """Write what the warps of a dataset's kernels wait for."""
    from causeway.variability.stall_summary import summarise_stalls  # datasets of counters alone need it

    summarise_stalls(dataset_of(path), tables_of(job, path), Path(path))


def write_explorer_of(job, page: str) -> None:
    """Write a dataset's explorer: a page that opens offline and zooms from the whole run to one launch."""
    home = Path(page).parent
    write_explorer(
        home,
        {folder.name: folder for folder in tables_of(job, page)},
        read_json(home / "clocks.json"),
        Path(page),
        read_json(job.output.findings)["findings"],
        job.params.launches,
        home / "path_pieces.parquet",
        str(theme_properties()),
    )


def write_interactive(job, path: str) -> None:
    """Write the interactive figures of a dataset, whose quality document is given."""
    home = Path(path).parent
    targets = [Path(kernels).parent.name for kernels in job.input.kernels if home in Path(kernels).parents]
    write_interactive_page(home, targets, Choice(**job.params.coordinates), Path(job.output.interactive))


def write_list(job) -> None:
    """Write the list of interactive pages, with the figures of compared pairs."""
    pairs = [Path(path).parent for path in job.input.comparisons]
    write_index([dataset_of(path) for path in job.input.quality], pairs, Path(job.output.interactive))


def write_page(job) -> None:
    """Write the overview: what was read, what varies and why, for every dataset; and what the archive opens with."""
    home = Path(job.output.page).parent
    datasets = views(job)
    findings = read_json(job.output.findings)
    write(draw_front(datasets, findings), job.output.front)
    page = draw_overview(
        datasets,
        findings,
        json.loads(job.params.shown),
        # an absolute folder, which no workflow of ours names, must not make equal pages differ
        results="results" if home.is_absolute() else home.as_posix(),
        comparisons=read_comparisons(job.input.comparisons),
        links=job.params.links,
    )
    write(page, job.output.page)


def views(job) -> list[DatasetView]:
    """Return the datasets in the order of their quality documents, each with its targets in the order of their
    kernels tables.
    """
    capabilities = read_capabilities(job.input.tables)
    clocks = {dataset_of(path): read_json(path) for path in job.input.clocks}
    searches = read_searches(job.input.scopes)
    kernels = tables_by_target(job.input.kernels, "kernel_summary")
    bins = tables_by_target(job.input.bins, "bins")
    ranking = tables_by_target(job.input.ranking, "ranking")
    replayed = tables_by_target(job.input.replayed, "replayed_what_ifs")
    efficiency = {dataset_of(path): read_json(path) for path in job.input.efficiency}
    tables = {dataset_of(path): read_table(path, "efficiency") for path in job.input.efficiency_tables}
    stragglers = {dataset_of(path): read_json(path) for path in job.input.stragglers}
    steps = {dataset_of(path): read_json(path) for path in job.input.steps}
    step_tables = {dataset_of(path): read_table(path, "steps") for path in job.input.step_tables}
    waiting = {dataset_of(path): read_rows_of_run(path, "waiting") for path in job.input.waiting}
    drawn: dict[str, dict] = {}
    for path in map(Path, job.input.figures):
        drawn.setdefault(path.parents[1].name, {})[path.stem] = svg_of(path)
    paths = {dataset_of(path): read_table(path, "critical_path") for path in job.input.critical_paths}
    replays = {dataset_of(path): read_table(path, "replay") for path in job.input.replays}
    operators = {dataset_of(path): read_table(path, "operator_summary") for path in job.input.operators}
    sizes = {dataset_of(path): read_table(path, "collective_sizes") for path in job.input.collectives}
    stalls = {dataset_of(path): read_table(path, "stall_reasons") for path in job.output.stalls}
    levels = {
        dataset_of(path): read_json(Path(path) / "index.json")
        for path in (job.input.levels if job.params.levels else ())
    }
    of_datasets = []
    for path in job.input.quality:
        dataset = dataset_of(path)
        targets = [
            TargetView(
                target=target,
                kernels=table,
                bins=bins[name, target],
                ranking=ranking[name, target],
                searches=searches.get((name, target), []),
                replayed=replayed.get((name, target)),
            )
            for (name, target), table in kernels.items()
            if name == dataset
        ]
        view = DatasetView(
            name=dataset,
            quality=read_json(path),
            clocks=clocks[dataset],
            capabilities=capabilities.get(dataset, []),
            targets=targets,
            efficiency=efficiency.get(dataset),
            efficiency_table=tables.get(dataset),
            stragglers=stragglers.get(dataset),
            steps=steps.get(dataset),
            steps_table=step_tables.get(dataset),
            waiting=waiting.get(dataset),
            critical_path=paths.get(dataset),
            replay=replays.get(dataset),
            operators=operators.get(dataset),
            collectives=sizes.get(dataset),
            stalls=stalls.get(dataset),
            levels=levels.get(dataset),
            figures=drawn.get(dataset, {}),
        )
        of_datasets.append(view)
    return of_datasets


if "snakemake" in globals():
    main(snakemake)
