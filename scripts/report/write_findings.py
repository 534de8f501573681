"""The findings of a run, and the pages that show them launch by launch: explorers and interactive figures."""

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import LOG, failing_clearly
from causeway.core.results import dataset_of
from causeway.core.tables import read_json, write_json
from causeway.findings.collection import ResultFiles, findings_document
from causeway.levels.explorer.explorer import write_explorer
from causeway.numeric.parts import Parts
from causeway.plotting.drawing.citations import interactive_page
from causeway.plotting.interactive.named_figures import Choice
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


def of_dataset(job, path: str) -> list[str]:
    """Return the inputs of the step that belong to the dataset of a path."""
    home = Path(path).parent
    return [path for path in job.input if home in Path(path).parents]


def tables_of(job, path: str) -> list[Path]:
    """Return the folders of tables of the dataset of a path, in the sheet's order."""
    return [folder for folder in map(Path, job.input.tables) if folder.parents[1] == Path(path).parent]


def write_findings(job) -> None:
    """Write what the results claim, ranked by what it is worth."""
    files = ResultFiles(**{field.name: getattr(job.input, field.name) for field in fields(ResultFiles)})
    document = findings_document(files, job.params.config_hash)
    dropped = sum(one["count"] for one in document["dropped"])
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


if "snakemake" in globals():
    main(snakemake)
