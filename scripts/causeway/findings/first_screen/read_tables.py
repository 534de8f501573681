"""What the facts of each dataset are read from: the files of its results."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from causeway.core.clock import clocks_of
from causeway.core.results import dataset_and_target, dataset_of, read_capabilities, read_rows_of_run, read_searches
from causeway.core.tables import read_json, read_table, table_metadata
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.findings.first_screen.run_facts import RunTables


def run_tables(files: object) -> Iterable[RunTables]:
    """Give what the facts of each dataset are read from, in the order of their quality documents.

    Parameters
    ----------
    files : collection.ResultFiles
    """
    folders: dict[str, list[Path]] = {}
    for folder in map(Path, files.tables):
        folders.setdefault(folder.parts[-3], []).append(folder)
    capabilities = read_capabilities(files.tables)
    searches = read_searches(files.scopes)
    kernels: dict[str, dict[str, Path]] = {}
    for path in map(Path, files.kernels):
        dataset, target = dataset_and_target(path)
        kernels.setdefault(dataset, {})[target] = path
    for path in files.quality:
        dataset = dataset_of(path)
        of = {name: _of(getattr(files, name), dataset) for name in ("efficiency", "stragglers", "steps", "step_tables")}
        targets = kernels.get(dataset, {})
        yield RunTables(
            dataset=dataset,
            folders=folders.get(dataset, ()),
            quality=read_json(path),
            clocks=clocks_of(read_json(_of(files.clocks, dataset))) if _of(files.clocks, dataset) else {},
            capabilities=capabilities.get(dataset, ()),
            efficiency=of["efficiency"] and read_json(of["efficiency"]),
            stragglers=of["stragglers"] and read_json(of["stragglers"]),
            steps=of["steps"] and read_json(of["steps"]),
            steps_table=of["step_tables"] and read_table(of["step_tables"], "steps"),
            targets={target: read_table(one, "kernel_summary").to_pylist() for target, one in targets.items()},
            units={target: table_metadata(one).get("value_unit", "") for target, one in targets.items()},
            searches=searches.get((dataset, KERNEL_VARIABILITY), ()),
            **_rows(files, dataset),
        )


def _rows(files: object, dataset: str) -> Mapping[str, Sequence[Mapping]]:
    """Return the rows of tables of a dataset, those of the whole run where they have steps."""
    found = {}
    for key, name, field in (
        ("waiting", "waiting", "waiting"),
        ("replay", "replay", "replays"),
        ("path", "critical_path", "critical_paths"),
    ):
        path = _of(getattr(files, field), dataset)
        found[key] = read_rows_of_run(path, name).to_pylist() if path else ()
    for key, name, field in (
        ("collectives", "collective_sizes", "collectives"),
        ("operators", "operator_summary", "operators"),
    ):
        path = _of(getattr(files, field), dataset)
        found[key] = read_table(path, name).to_pylist() if path else ()
    return found


def _of(paths: Iterable[str | Path], dataset: str) -> str | Path | None:
    return next((path for path in paths if dataset_of(path) == dataset), None)
