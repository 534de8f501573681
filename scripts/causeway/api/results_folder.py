"""A results folder with its datasets, findings and tables, each read when it is asked for."""

import glob
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from causeway.api.events import events_relation
from causeway.api.integrity import open_checked
from causeway.api.sql import run_query, table_relation
from causeway.core.clock import clocks_of
from causeway.core.errors import CausewayError
from causeway.core.files.checked_parquet import CheckedParquet
from causeway.core.files.listing import MARKS, read_listing
from causeway.core.tables import read_json
from causeway.core.vocabulary import KERNEL_VARIABILITY
from causeway.plotting.interactive.look import DARK, template
from causeway.plotting.interactive.named_figures import COMPARISON, FIGURES, Choice, draw, draw_pair, no_figure

if TYPE_CHECKING:
    import dowhy
    import duckdb
    import pandas as pd
    import plotly.graph_objects as go

BATCH_ROWS = 65536
"""Rows of a batch: a few MB of each column, so that a table larger than memory can be read."""


@dataclass(frozen=True)
class TableFile:
    """One Parquet table of the results; nothing is read before a method is called.

    Attributes
    ----------
    path : Path
        The file.
    root : Path
        The results folder.
    """

    path: Path
    root: Path

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in the file's order; reads the footer alone.

        Raises
        ------
        TableError
            If the file is damaged; so for everything that reads it.
        """
        with CheckedParquet(self.path) as file:
            return list(file.schema_arrow.names)

    @property
    def rows(self) -> int:
        """Number of rows; reads the footer alone."""
        with CheckedParquet(self.path) as file:
            return int(file.metadata.num_rows)

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table, or some of its columns, in the file's order of rows; units stand in the fields' metadata.

        Raises
        ------
        CausewayError
            If a column is not there.
        """
        self._check(columns)
        with open_checked(self.root, self.path) as file:
            return file.read(columns=None if columns is None else list(columns))

    def batches(self, columns: Sequence[str] | None = None, rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the table in batches of at most `rows` rows, in the file's order; columns in the order asked for.

        Raises
        ------
        CausewayError
            If a column is not there, when the first batch is asked for.
        """
        self._check(columns)
        with open_checked(self.root, self.path) as file:
            yield from file.iter_batches(batch_size=rows, columns=None if columns is None else list(columns))

    def pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return the table, or some of its columns, as a data frame."""
        return self.arrow(columns).to_pandas()

    def relation(self) -> "duckdb.DuckDBPyRelation":
        """Return a DuckDB relation, which reads what a query of it needs; it may open files of the results alone.

        The whole file is checked first: DuckDB does not look at the checksums of pages.

        Raises
        ------
        CausewayError
            If it is damaged.
        """
        return table_relation(self.root, self.path)

    def _check(self, columns: Sequence[str] | None) -> None:
        """Refuse columns that are not there: Arrow would leave them out without a word."""
        if missing := sorted({*(columns or ())} - {*self.columns}):
            raise CausewayError(f"{self.path}: has no column {', '.join(missing)}; it has {', '.join(self.columns)}")


@dataclass(frozen=True)
class DatasetResults:
    """What a run made of one dataset.

    Attributes
    ----------
    name : str
        The dataset's name in the sheet.
    folder : Path
    root : Path
        The results folder.
    """

    name: str
    folder: Path
    root: Path

    @property
    def targets(self) -> list[str]:
        """Targets whose causes were searched, by name."""
        return sorted(path.parent.name for path in self.folder.glob("*/kernels.parquet"))

    @property
    def exports(self) -> list[str]:
        """Names of the exports whose tables were written."""
        return sorted(path.parent.name for path in self.folder.glob("tables/*/capabilities.json"))

    @property
    def tables(self) -> dict[str, TableFile]:
        """Every Parquet table by its path in the dataset's folder without the ending, in order of the paths.

        For example `kernel_variability/kernels` or `tables/0/launches`.
        """
        paths = sorted(self.folder.rglob("*.parquet"))
        return {path.relative_to(self.folder).with_suffix("").as_posix(): TableFile(path, self.root) for path in paths}

    def table(self, name: str) -> TableFile:
        """Return one of `tables`.

        Raises
        ------
        CausewayError
            If the run made no such table.
        """
        path = self.folder / f"{name}.parquet"
        if not path.resolve().is_relative_to(self.folder.resolve()) or not path.is_file():
            raise CausewayError(f"{self.name}: there is no table {name}; `tables` lists those that the run made")
        return TableFile(path, self.root)

    def events(self) -> "duckdb.DuckDBPyRelation":
        """Return the dataset's events in one table: a row for each launch, copy and graph, of all exports.

        Columns: kind (`kernel`, `copy`, `graph`), export, rank, device, stream; start, duration and call on the
        dataset's time line, ns; kernel and configuration; bytes and kinds of a copy; operator, range and step. What is
        not recorded is null.

        Raises
        ------
        CausewayError
            If there are none, or a table is damaged.
        """
        return events_relation(self.root, self.folder, clocks_of(self.document("clocks")))

    def document(self, name: str) -> dict[str, Any]:
        """Return a JSON document of the dataset, for example `quality`, `clocks` or `efficiency`.

        Raises
        ------
        CausewayError
            If the run made no such document, or it is damaged.
        """
        return _document(self.folder, name)

    def model(self, scope: str = "dataset", cause: str | None = None, target: str | None = None) -> "dowhy.CausalModel":
        """Return the causal model of a scope as a dowhy model, whose treatment is one cause; reads the whole table.

        Parameters
        ----------
        scope : str
            The id of a kernel, or `dataset`.
        cause : str or None
            None: the cause with the largest share of the variance.
        target : str or None
            One of `targets`; None: `kernel_variability` where that is one, else the first.

        Raises
        ------
        CausewayError
            If the run made no such model, the scope has no such cause, or dowhy is not installed.
        """
        try:
            import dowhy
        except ImportError:
            raise CausewayError("dowhy is not installed; it supports Python up to 3.13, install it there") from None
        searched = self.targets
        target = target or (KERNEL_VARIABILITY if KERNEL_VARIABILITY in searched else next(iter(searched), ""))
        name = f"{target}/causal/{scope}/model"
        with open_checked(self.root, self.table(name).path) as file:
            table = file.read()
        facts = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
        causes = [column for column in facts["causeway.causes"].split("\n") if column]
        if cause not in (None, *causes) or not causes:
            listed = ", ".join(causes) or "none"
            raise CausewayError(f"{self.name}, {scope}: {cause or 'no column'} is no cause of it; found were: {listed}")
        frame = table.to_pandas()
        graph = str(self.folder / f"{name}.gml")
        return dowhy.CausalModel(frame, cause or causes[0], facts["causeway.value"], graph=graph)

    def figure(self, name: str, target: str | None = None, dark: bool = False) -> "go.Figure":
        """Return an interactive figure, which a notebook shows; reads what it draws.

        Parameters
        ----------
        name : str
            `bins`, `distribution_by_cause`, `parallel_coordinates`, `step_times` or `roofline`.
        target : str or None
            One of `targets`; None: `kernel_variability` where that is one, else the first.
        dark : bool
            For a dark page.

        Raises
        ------
        CausewayError
            If there is no such figure, or what it shows was not recorded.
        """
        target = target or (KERNEL_VARIABILITY if KERNEL_VARIABILITY in self.targets else next(iter(self.targets), ""))
        if target not in self.targets:
            listed = ", ".join(self.targets) or "none"
            raise CausewayError(f"{self.name}: {target or 'no target'} was not analysed; targets are: {listed}")
        return _for_page(draw(self.folder, name, target, Choice.of_run(self.root)), dark)

    @property
    def figures(self) -> list[Path]:
        """Figures and pages of the dataset: files ending in .svg, and the first pages of folders of pages."""
        return sorted([*self.folder.rglob("*.svg"), *self.folder.rglob("index.html")])


@dataclass(frozen=True)
class ResultsFolder:
    """The results of a run.

    Attributes
    ----------
    folder : Path
    """

    folder: Path

    @property
    def datasets(self) -> dict[str, DatasetResults]:
        """Datasets by name: the folders that hold `quality.json`, or tables alone, as a comparison leaves them; without
        those that the last run's configuration did not have (`datasets.json`).

        Raises
        ------
        CausewayError
            If `datasets.json` is damaged.
        """
        folders = sorted({path.parent for mark in MARKS for path in self.folder.glob(f"*/{mark}")})
        listing = read_listing(self.folder)
        if listing is not None:
            folders = [path for path in folders if path.name in listing.datasets]
        return {path.name: DatasetResults(path.name, path, self.folder) for path in folders}

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The findings of `findings.json`, those worth most first.

        Raises
        ------
        CausewayError
            If the run has not made them, or the document is damaged.
        """
        return list(_document(self.folder, "findings")["findings"])

    def model(self, scope: str = "dataset", cause: str | None = None, target: str | None = None) -> "dowhy.CausalModel":
        """Return the causal model of a kernel, or of the only dataset, as `DatasetResults.model` does.

        Raises
        ------
        CausewayError
            As there, and if several datasets or none have the scope.
        """
        having = [
            dataset
            for dataset in self.datasets.values()
            if any(dataset.folder.glob(f"*/causal/{glob.escape(scope)}/model.gml"))
        ]
        if len(having) != 1:
            names = ", ".join(dataset.name for dataset in having) or "no dataset"
            raise CausewayError(f"{scope}: {names} has a model of it; name one dataset, `datasets[...].model(...)`")
        return having[0].model(scope, cause, target)

    def figure(self, name: str, of: str | None = None, target: str | None = None, dark: bool = False) -> "go.Figure":
        """Return an interactive figure: of a dataset as `DatasetResults.figure` does, or `comparison` of two.

        Parameters
        ----------
        name : str
        of : str or None
            A dataset, or for `comparison` a pair, `before__after`; None: the only one.
        target, dark
            As there.

        Raises
        ------
        CausewayError
            As there, if there is no such figure, and if there are several datasets or pairs, or none of that name.
        """
        if name in FIGURES:
            return self.datasets[_only(name, of, self.datasets)].figure(name, target, dark)
        if name != COMPARISON:
            raise CausewayError(no_figure(name))
        pairs = {path.parent.name: path.parent for path in sorted(self.folder.glob("compare/*/comparison.json"))}
        return _for_page(draw_pair(pairs[_only(name, of, pairs)]), dark)

    def query(self, statement: str) -> pa.Table:
        """Return the rows of one SELECT statement, columns named as in it; paths count from the results folder.

        Raises
        ------
        CausewayError
            If the statement is not one SELECT, or reads anything but the results.
        """
        return run_query(self.folder, statement)


def _only(figure: str, of: str | None, names: Iterable[str]) -> str:
    names = list(names)
    if of in names or (of is None and len(names) == 1):
        return of or names[0]
    raise CausewayError(f"{figure}: name one with `of=`; there are {', '.join(names) or 'none'}")


def _for_page(figure: "go.Figure", dark: bool) -> "go.Figure":
    return figure.update_layout(template=template(DARK)) if dark else figure


def _document(folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.json"
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise CausewayError(f"{path}: there is no such document; the run may not have ended")
    return dict(read_json(path))


def open_results(folder: str | Path) -> ResultsFolder:
    """Return the results of a run.

    Parameters
    ----------
    folder : str or Path
        The folder `results`, or the one that holds it.

    Raises
    ------
    CausewayError
        If there are no results.
    """
    for candidate in (Path(folder), Path(folder) / "results"):
        marks = ("findings.json", "*/quality.json", "compare/*/comparison.json")
        if any(next(candidate.glob(mark), None) for mark in marks):
            return ResultsFolder(candidate)
    raise CausewayError(
        f"{folder}: holds no results; expected findings.json, a dataset's quality.json, or a comparison, in it"
    )
