"""The causal model of one scope: one row a launch, and a graph over the same columns.

The graph holds the causes that the search found, mediators among them, and the measured value itself: no other column
lies on a way to the value. What comes before what is prior knowledge: clocks and levers are set before a launch, an
exposure is the state that it meets, a mediator is measured during it, and the value comes last. An edge between two
columns of one rank has no direction that observational data tell: in the frame's graph it points along the order of the
columns and is marked as `open`; in the GML that is written, an unmeasured common cause stands for it, so that neither
column is taken for an effect of the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from causeway.causal.data.observations import Candidate, Feature, Observations
from causeway.causal.data.outcome import CONFIGURATION, Outcome
from causeway.causal.effects.evidence import Evidence
from causeway.causal.preparation.categorical import NOT_KNOWN
from causeway.causal.preparation.prepare import unique_names
from causeway.core.files.whole_files import write_whole
from causeway.core.names.prior_knowledge import CLOCK, EXPOSURE, LAG, LEVER, MEDIATOR
from causeway.core.tables import read_table, table_metadata, write_table
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

RANKS = {CLOCK: 0, LEVER: 0, LAG: 1, EXPOSURE: 1, MEDIATOR: 2}
"""What comes before what, by role."""
CONFIGURATION_NODE = "configuration"
"""Which configuration a launch has, where there are several: their means differ, and so may all columns."""
VALUES = {KERNEL_VARIABILITY: "duration_ns", MEMORY_STALL: "stall_ns"}
"""Name of the measured value by target; another target is the value itself."""
IDENTITY = ("launch_rank", "launch_index", "launch_start_ns", "launch_weight", "launch_block", "launch_configuration")
"""What tells a row of the frame apart and what it weighs: its index; no columns of the graph."""
UNMEASURED = "unmeasured cause of"
"""How the names of unmeasured common causes begin in the GML."""
GML = "model.gml"
TABLE = "model.parquet"


@dataclass(frozen=True, kw_only=True)
class ScopeModel:
    """The model of one scope.

    Attributes
    ----------
    frame : DataFrame
        One row a launch in time order, one column a node of the graph, in an order in which no cause stands behind its
        effect; the measured value is the last one. Numbers are floats in the column's unit, gaps filled with the
        median of their configuration; categories have as levels those that the search told apart, and `other`. The
        index has the levels `IDENTITY`: rank, number and start of the launch as `features.parquet` has them, its
        weight, its block of dependent launches, and the code of its configuration.
    graph : DiGraph
        Acyclic, over the columns. An edge has the attribute `open`: 1 where its direction is not known.
    value : str
        The column of the measured value.
    causes : tuple of str
        The columns that the search found to be causes, in the order of the arrows.
    """

    frame: "pd.DataFrame"
    graph: "nx.DiGraph"
    value: str
    causes: tuple[str, ...]

    def with_unmeasured(self) -> "nx.DiGraph":
        """Return the graph with an unmeasured common cause in the place of each open edge."""
        import networkx as nx

        whole = nx.DiGraph()
        whole.add_nodes_from(self.graph.nodes)
        for source, target, is_open in self.graph.edges(data="open"):
            if is_open:
                common = f"{UNMEASURED} {source} and {target}"
                whole.add_edges_from([(common, source), (common, target)])
            else:
                whole.add_edge(source, target)
        return whole


def scope_model(outcome: Outcome, evidence: Evidence | None) -> ScopeModel:
    """Return the model of a scope.

    Parameters
    ----------
    outcome : Outcome
        With its examination, of which the edges among causes are taken.
    evidence : Evidence or None
        What `discover` gave beside the outcome; without it (a refusal) the frame has no rows.
    """
    import networkx as nx
    import pandas as pd

    value = VALUES.get(outcome.scope.target, outcome.scope.target)
    graph = nx.DiGraph()
    if evidence is None:
        graph.add_node(value)
        index = pd.MultiIndex.from_arrays([np.zeros(0, np.int64)] * len(IDENTITY), names=IDENTITY)
        return ScopeModel(frame=pd.DataFrame({value: np.zeros(0)}, index=index), graph=graph, value=value, causes=())
    causes = [arrow.name for arrow in outcome.arrows if arrow.name != value]
    between = {arrow.name for arrow in outcome.arrows if arrow.stage == CONFIGURATION}
    roles = {arrow.name: arrow.role for arrow in outcome.arrows}
    columns = _columns_of(evidence, sorted(causes, key=lambda name: (RANKS[roles[name]], name)))
    names = list(columns)
    configurations = evidence.rows.configuration
    if configurations.any():
        columns = {CONFIGURATION_NODE: pd.Categorical(configurations.astype(str)), **columns}
    columns[value] = _measured(evidence.rows)
    graph.add_nodes_from(columns)
    within = [name for name in (*names, value) if name not in between]
    if CONFIGURATION_NODE in columns:
        graph.add_edges_from([(CONFIGURATION_NODE, name, {"open": 0}) for name in within])
    position = {name: number for number, name in enumerate(names)}
    for source, target in sorted(_pairs(outcome, set(names)), key=lambda pair: sorted(position[name] for name in pair)):
        first, last = sorted((source, target), key=lambda name: position[name])
        graph.add_edge(first, last, open=int(RANKS[roles[first]] == RANKS[roles[last]]))
    graph.add_edges_from([(name, value, {"open": 0}) for name in causes if name in columns])
    frame = pd.DataFrame(columns, index=_identity(evidence))
    return ScopeModel(frame=frame, graph=graph, value=value, causes=tuple(name for name in causes if name in columns))


def write_model(model: ScopeModel, folder: str | Path, facts: dict[str, str]) -> None:
    """Write `model.gml` and `model.parquet` into a folder.

    Parameters
    ----------
    model : ScopeModel
    folder : path
    facts : mapping of str to str
        Written into the table's metadata, beside `value` and the `causes`, one a line.
    """
    import networkx as nx

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / GML, "\n".join(nx.generate_gml(model.with_unmeasured())) + "\n")
    identity = {name: model.frame.index.get_level_values(name).to_numpy() for name in IDENTITY}
    table = pa.table({**identity, **{name: _arrow(model.frame[name]) for name in model.frame}})
    extra = [field for field in table.schema if field.name not in IDENTITY]
    facts = {**facts, "value": model.value, "causes": "\n".join(model.causes)}
    write_table(table, folder / TABLE, "model", extra, facts)


def read_model(folder: str | Path) -> ScopeModel:
    """Read what `write_model` wrote.

    Raises
    ------
    TableError
        If the table is missing, damaged or of another version.
    """
    import networkx as nx

    folder = Path(folder)
    table = read_table(folder / TABLE, "model")
    facts = table_metadata(folder / TABLE)
    frame = table.to_pandas().set_index(list(IDENTITY))
    whole = nx.DiGraph(nx.read_gml(folder / GML))
    graph = nx.DiGraph()
    graph.add_nodes_from(frame.columns)
    position = {name: number for number, name in enumerate(frame.columns)}
    for source, target in whole.edges:
        if source in position:
            graph.add_edge(source, target, open=0)
    for node in whole.nodes:
        if node not in position:
            first, last = sorted(whole.successors(node), key=lambda name: position[name])
            graph.add_edge(first, last, open=1)
    causes = tuple(name for name in facts["causes"].split("\n") if name)
    return ScopeModel(frame=frame, graph=graph, value=facts["value"], causes=causes)


def _pairs(outcome: Outcome, names: set[str]) -> set[tuple[str, str]]:
    """Return the pairs of columns that depend on each other beside all others: those of the graph among features, and
    each cause with the mediators through which it was found to act.
    """
    pairs = {(edge.source, edge.target) for edge in outcome.examination.context_edges}
    for arrow in outcome.arrows:
        pairs |= {(arrow.name, mediator) for mediator in arrow.through.split(", ") if mediator}
    return {(min(pair), max(pair)) for pair in pairs if set(pair) <= names and pair[0] != pair[1]}


def _columns_of(evidence: Evidence, names: Sequence[str]) -> dict[str, "np.ndarray | pd.Categorical"]:
    """Return columns as measured, in the order of the names; without those that have no measured column."""
    prepared = evidence.prepared
    candidates = {candidate.name: candidate for candidate in (*prepared.between, *prepared.within)}
    measured = dict(zip(unique_names(column.name for column in evidence.columns), evidence.columns, strict=True))
    return {
        name: _column(measured[name], candidates.get(name), evidence.rows)
        for name in names
        if name in measured and name not in IDENTITY
    }


def _column(feature: Feature, candidate: Candidate | None, rows: Observations) -> "np.ndarray | pd.Categorical":
    """Return a column without gaps."""
    import pandas as pd

    if candidate is not None and candidate.levels and len(candidate.values) == len(rows):
        return pd.Categorical.from_codes(candidate.codes, list(candidate.levels))
    measured = feature.values  # noqa: PD011
    if measured.dtype == object:
        return pd.Categorical([NOT_KNOWN if text is None else str(text) for text in measured])
    return without_gaps(measured.astype(float), rows.configuration)


def without_gaps(values: np.ndarray, configuration: np.ndarray) -> np.ndarray:
    """Return a number with the median of its configuration, else of all, where it is missing; NaN if it is everywhere.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
    configuration : ndarray of int, shape (n_rows,)

    Returns
    -------
    ndarray of float, shape (n_rows,)
    """
    import pandas as pd

    series = pd.Series(values)
    if series.isna().any():
        series = series.fillna(series.groupby(configuration).transform("median")).fillna(series.median())
    return series.to_numpy()


def _measured(rows: Observations) -> np.ndarray:
    """Return the measured value of each row, in its unit."""
    taken = 0.0 if rows.taken_out is None else rows.taken_out
    return rows.mean + rows.signed + taken


def _identity(evidence: Evidence) -> "pd.MultiIndex":
    """Return the index of the frame; rows whose launch is not known count from 0 on rank 0."""
    import pandas as pd

    rows = evidence.rows
    count = np.arange(len(rows))
    columns = [np.zeros_like(count), count, count]
    if rows.launch is not None:
        columns = [rows.launch["rank"], rows.launch["launch"], rows.launch["start_ns"]]
    arrays = [*columns, rows.weight, evidence.stages.blocks, rows.configuration]
    return pd.MultiIndex.from_arrays(arrays, names=IDENTITY)


def _arrow(series: "pd.Series") -> pa.Array:
    """Return a column for the table, categories as dictionaries."""
    if series.dtype == "category":
        return pa.DictionaryArray.from_arrays(
            pa.array(series.cat.codes.to_numpy(), pa.int32()), pa.array(list(series.cat.categories), pa.string())
        )
    return pa.array(series.to_numpy(), pa.float64())
