"""What the facts of each dataset are read from: the files of its results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.clock import clocks_of
from causeway.core.results import dataset_and_target, dataset_of, read_capabilities, read_rows_of_run, read_searches
from causeway.core.schemas import Row
from causeway.core.tables import read_json, read_table, table_metadata
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.findings.first_screen.run_facts import RunTables


@dataclass(frozen=True, kw_only=True)
class ResultFiles:
    """Files of an analysis that claims are made from, each kind in the order of the datasets."""

    tables: Sequence[str | Path]
    quality: Sequence[str | Path]
    clocks: Sequence[str | Path]
    kernels: Sequence[str | Path]
    scopes: Sequence[str | Path]
    efficiency: Sequence[str | Path]
    stragglers: Sequence[str | Path]
    steps: Sequence[str | Path]
    step_tables: Sequence[str | Path]
    waiting: Sequence[str | Path]
    replays: Sequence[str | Path]
    operators: Sequence[str | Path]
    collectives: Sequence[str | Path]
    comparisons: Sequence[str | Path]


def run_tables(files: ResultFiles) -> Iterable[RunTables]:
    """Give what the facts of each dataset are read from, in the order of their quality documents."""
    folders: dict[str, list[Path]] = {}
    for folder in map(Path, files.tables):
        folders.setdefault(folder.parts[-3], []).append(folder)
    capabilities = read_capabilities(files.tables)
    searches = read_searches(files.scopes)
    kernels: dict[str, dict[str, Path]] = {}
    for table in files.kernels:
        dataset, target = dataset_and_target(table)
        kernels.setdefault(dataset, {})[target] = Path(table)
    for path in files.quality:
        dataset = dataset_of(path)
        clocks = _document(files.clocks, dataset)
        steps_table = _of(files.step_tables, dataset)
        targets = kernels.get(dataset, {})
        rows = {target: read_table(file, "kernel_summary").to_pylist() for target, file in targets.items()}
        first = max(rows, key=lambda target: bool(rows[target]), default="")  # the first with rows, as the screen takes
        yield RunTables(
            dataset=dataset,
            folders=folders.get(dataset, ()),
            quality=read_json(path),
            clocks=clocks_of(clocks) if clocks else {},
            capabilities=capabilities.get(dataset, ()),
            efficiency=_document(files.efficiency, dataset),
            stragglers=_document(files.stragglers, dataset),
            steps=_document(files.steps, dataset),
            steps_table=read_table(steps_table, "steps") if steps_table else None,
            targets=rows,
            units={target: table_metadata(file).get("value_unit", "") for target, file in targets.items()},
            searches=next(
                (searches[key] for key in ((dataset, KERNEL_VARIABILITY), (dataset, first)) if key in searches), ()
            ),
            **_rows(files, dataset),
        )


def _document(paths: Iterable[str | Path], dataset: str) -> Row:
    path = _of(paths, dataset)
    return read_json(path) if path else {}


def _rows(files: ResultFiles, dataset: str) -> Mapping[str, Sequence[Row]]:
    """Return the rows of tables of a dataset, those of the whole run where they have steps."""
    rows = {}
    for key, name, paths, has_steps in (
        ("waiting", "waiting", files.waiting, True),
        ("replay", "replay", files.replays, True),
        ("collectives", "collective_sizes", files.collectives, False),
        ("operators", "operator_summary", files.operators, False),
    ):
        if path := _of(paths, dataset):
            rows[key] = (read_rows_of_run(path, name) if has_steps else read_table(path, name)).to_pylist()
    return rows


def _of(paths: Iterable[str | Path], dataset: str) -> str | Path | None:
    return next((path for path in paths if dataset_of(path) == dataset), None)
