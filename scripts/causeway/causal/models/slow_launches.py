"""Why a launch was slow: what its duration is above the mean of its configuration, attributed to the kernel's causes
and to what is unexplained, in ns that add up.

Each node's own noise is taken from the launch (abduction). The worth of a set of nodes is the mean duration of the
configuration's launches if these had the slow launch's noise in that set; attributions are Shapley values of it. What
a cause brings through another stands with the first.

References
----------
K. Budhathoki, L. Minorics, P. Bloebaum, D. Janzing, Causal structure-based root cause analysis of outliers, Proc. ICML
2022, PMLR 162:2357.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.causal.data.observations import FEWEST_LAUNCHES
from causeway.causal.data.outcome import CONFIGURATION, Outcome
from causeway.causal.data.scopes import DATASET_SCOPE, totals_of
from causeway.causal.effects.time_model import MAX_ROWS
from causeway.causal.models.kernel_rows import (
    MOST_CAUSES,
    MOST_CONFIGURATIONS,
    Curve,
    DrawnRows,
    KernelRows,
    as_codes,
    evenly,
    guarded,
    load_gcm,
    read_rows,
)
from causeway.causal.models.scope_model import GML
from causeway.core.formatting import setting_value
from causeway.core.tables import SCHEMAS, write_table
from causeway.core.vocabulary import MEMORY_STALL, SUPPORTED, UNEXPLAINED
from causeway.events.distinct_texts import distinct_texts
from causeway.numeric.effective_size import REFUSED_BELOW
from causeway.numeric.process import single_threaded
from causeway.numeric.seeds import derived_seed

SLOW_LAUNCHES = "slow_launches"
NO_TIMES = "the measured values are no durations of kernels"
NO_CAUSE = "no cause is supported"
NO_DOWHY = "dowhy is not installed here: it has no version for this Python, or was left out"
SLOWEST = 20
REFERENCE = 200
"""Launches that a slow one is compared with: their mean is known to a fourteenth of a standard deviation."""


@dataclass(frozen=True)
class SlowLaunch:
    """One slow launch and what made it so.

    Attributes
    ----------
    row : int
        Its position among the kernel's rows.
    deviation_ns : int
        Above the mean of its configuration.
    attributed_ns : dict of str to int
        By cause; what they leave of the deviation is unexplained.
    """

    row: int
    deviation_ns: int
    attributed_ns: dict[str, int]

    @property
    def unexplained_ns(self) -> int:
        """What no cause explains."""
        return self.deviation_ns - sum(self.attributed_ns.values())


def slow_launches(
    rows: KernelRows, causes: Sequence[str], seed: int, edges: Sequence[tuple[str, str]] = ()
) -> list[SlowLaunch]:
    """Return the launches with the largest deviations, the slowest first.

    Parameters
    ----------
    rows : KernelRows
    causes : sequence of str
        The kernel's supported causes, the largest first; those beyond `MOST_CAUSES` are unexplained.
    seed : int
        Of the order in which gcm sums over launches.
    edges : sequence of pair of str
        Of the graph among causes: which of them drives which.

    Returns
    -------
    list of SlowLaunch
        At most `SLOWEST`; none where there are too few rows, or no cause. Only launches of configurations with
        `FEWEST_LAUNCHES` rows are asked about.
    """
    names = [name for name in causes if name in rows.causes and len(np.unique(rows.causes[name])) > 1][:MOST_CAUSES]
    if not names or len(rows) < REFUSED_BELOW:
        return []
    model = _Model(rows, names, edges, seed)
    deviation = rows.value - rows.mean
    counts = np.bincount(model.configuration)[model.configuration]
    slowest = np.argsort(np.where(counts >= FEWEST_LAUNCHES, -deviation, np.inf), kind="stable")[:SLOWEST]
    slowest = slowest[(deviation[slowest] > 0) & (counts[slowest] >= FEWEST_LAUNCHES)]
    shares: dict[int, np.ndarray] = {}
    for code in np.unique(model.configuration[slowest]):
        own = slowest[model.configuration[slowest] == code]
        shares |= dict(zip(own.tolist(), model.attributed(own, int(code)), strict=True))
    return [
        SlowLaunch(
            row,
            round(float(deviation[row])),
            {name: round(float(share * rows.mean[row])) for name, share in zip(names, shares[row], strict=True)},
        )
        for row in slowest.tolist()
    ]


class _Model:
    """The structural model of a kernel's durations, each over the mean of its configuration."""

    def __init__(self, rows: KernelRows, names: Sequence[str], edges: Sequence[tuple[str, str]], seed: int) -> None:
        gcm = load_gcm()
        gcm.util.general.set_random_seed(seed % 2**32)
        self._gcm = gcm
        self.configuration = distinct_texts(rows.configuration, unknown="")[1]
        (codes,) = as_codes([rows.configuration], MOST_CONFIGURATIONS)
        self._values = np.column_stack([*(as_codes([rows.causes[name]])[0] for name in names), codes])
        self._weight = rows.weight
        categories = [*(rows.causes[name].dtype == object for name in names), True]
        self._order = list(_sorted(names, edges, categories))
        last = len(names)
        fitted = evenly(np.ones(len(rows)), min(len(rows), MAX_ROWS))
        inputs = self._values[fitted]
        weight = rows.weight[fitted]
        self._mechanisms = {}
        for node, parents in self._order:
            if parents:
                own = Curve([categories[column] for column in (*parents, last)], (len(parents),), weight)
                self._mechanisms[node] = gcm.AdditiveNoiseModel(own, DrawnRows(node))
                self._mechanisms[node].fit(inputs[:, [*parents, last]], inputs[:, node])
        function = gcm.ml.regression.InvertibleExponentialFunction()
        self._target = gcm.PostNonlinearModel(Curve(categories, (last,), weight), DrawnRows(last), function)
        relative = rows.value / rows.mean
        self._target.fit(inputs, relative[fitted])
        self._noise = self._noise_of(relative)

    def _noise_of(self, relative: np.ndarray) -> np.ndarray:
        """Return the noise of each node, the target's last, shape (n_rows, n_causes + 1)."""
        noise = self._values.astype(float)
        for node, parents in self._order:
            if parents:
                given = self._values[:, [*parents, -1]]
                noise[:, node] = self._mechanisms[node].estimate_noise(self._values[:, node], given)[:, 0]
        noise[:, -1] = self._target.estimate_noise(relative, self._values)[:, 0]
        return noise

    def _replay(self, code: float) -> Callable[[np.ndarray], np.ndarray]:
        """Return what gives the relative durations of one configuration from the noise of all nodes."""

        def replayed(noise: np.ndarray) -> np.ndarray:
            values = np.column_stack([noise[:, :-1], np.full(len(noise), code)])
            for node, parents in self._order:
                if parents:
                    values[:, node] = self._mechanisms[node].evaluate(values[:, [*parents, -1]], noise[:, node])[:, 0]
            return self._target.evaluate(values, noise[:, -1])[:, 0]

        return replayed

    def attributed(self, launches: np.ndarray, configuration: int) -> np.ndarray:
        """Return what each cause brought to launches of a configuration, in its mean, shape (n_launches, n_causes)."""
        from dowhy.gcm.anomaly import attribute_anomaly_scores

        own = np.flatnonzero(self.configuration == configuration)
        reference = own[evenly(self._weight[own], min(own.size, REFERENCE))]
        exact = self._gcm.shapley.ShapleyApproximationMethods.EXACT
        shares = attribute_anomaly_scores(
            self._noise[launches],
            self._noise[reference],
            self._replay(self._values[own[0], -1]),
            attribute_mean_deviation=True,
            shapley_config=self._gcm.shapley.ShapleyConfig(exact, n_jobs=1),
        )
        return shares[:, :-1]


def _sorted(
    names: Sequence[str], edges: Sequence[tuple[str, str]], categories: Sequence[bool]
) -> Iterator[tuple[int, list[int]]]:
    """Yield the position of each cause with those of its parents, parents first; a category has none."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from(edge for edge in edges if set(edge) <= {*names} and not categories[names.index(edge[1])])
    for name in nx.lexicographical_topological_sort(graph, key=names.index):
        yield names.index(name), sorted(names.index(parent) for parent in graph.predecessors(name))


def supported_causes(outcome: Outcome) -> list[str]:
    """Return the supported causes of launches within a configuration, the largest first."""
    return [arrow.name for arrow in outcome.arrows if arrow.verdict == SUPPORTED and arrow.stage != CONFIGURATION]


def write_slow_launches(folder: Path, kernels: Sequence[Outcome], dataset: str, seed: int) -> None:
    """Write the table of each kernel, and of the dataset that of the slowest launches of all of them. Where there is
    nothing to say the table is empty, and its metadata says `why`.

    Parameters
    ----------
    folder : Path
        Of the target, with features.parquet, and the models of the kernels below `causal`.
    kernels : sequence of Outcome
        Corrected.
    dataset : str
    seed : int
    """
    causes = {outcome.scope.scope: supported_causes(outcome) for outcome in kernels}
    slow: dict[str, list[dict]] = {}
    why = ""
    if folder.name == MEMORY_STALL or not totals_of(folder / "kernels.parquet").is_time:
        why = NO_TIMES
    elif any(causes.values()):
        try:
            with single_threaded(["sklearn.ensemble", "sklearn.linear_model"]):  # which dowhy fits
                slow = _slow_rows(folder, {kernel: names for kernel, names in causes.items() if names}, dataset, seed)
        except ImportError:
            why = NO_DOWHY
    every = [launch for launches in slow.values() for launch in launches]
    every.sort(key=lambda launch: (-launch["deviation_ns"], launch["kernel"], launch["position"]))
    every = [{**launch, "position": number + 1} for number, launch in enumerate(every[:SLOWEST])]
    for scope, launches in {**{kernel: slow.get(kernel, []) for kernel in causes}, DATASET_SCOPE: every}.items():
        rows = [{**launch, **part} for launch in launches for part in launch["parts"]]
        table = pa.Table.from_pylist(rows, schema=SCHEMAS[SLOW_LAUNCHES])
        facts = {"dataset": dataset, "target": folder.name, "scope": scope}
        facts |= {} if rows else {"why": why or NO_CAUSE}
        write_table(table, folder / "causal" / scope / f"{SLOW_LAUNCHES}.parquet", SLOW_LAUNCHES, metadata=facts)


def _slow_rows(folder: Path, causes: Mapping[str, Sequence[str]], dataset: str, seed: int) -> dict[str, list[dict]]:
    """Return the slow launches of each kernel as rows, each with its parts."""
    slow = {}
    for kernel, rows in read_rows(folder, causes):
        edges = _edges(folder / "causal" / kernel / GML)
        own_seed = derived_seed(seed, dataset, folder.name, kernel, SLOW_LAUNCHES)
        own = guarded(kernel, partial(slow_launches, rows, causes[kernel], own_seed, edges))
        if not isinstance(own, str):
            slow[kernel] = [_row(kernel, number + 1, launch, rows) for number, launch in enumerate(own)]
    return slow


def _edges(path: Path) -> list[tuple[str, str]]:
    """Return the edges of a scope's graph whose direction is known."""
    import networkx as nx

    return list(nx.DiGraph(nx.read_gml(path)).edges) if path.exists() else []


def _row(kernel: str, position: int, launch: SlowLaunch, rows: KernelRows) -> dict:
    identity = {name: rows.launches.column(name)[launch.row].as_py() for name in ("rank", "launch", "start_ns")}
    parts: list[dict] = [
        {
            "feature": name,
            "value": _words(rows.causes[name][launch.row], rows.units[name]),
            "attributed_ns": part,
            UNEXPLAINED: False,
        }
        for name, part in launch.attributed_ns.items()
    ]
    parts.sort(key=lambda part: -abs(part["attributed_ns"]))
    rest = {"feature": UNEXPLAINED, "value": None, "attributed_ns": launch.unexplained_ns, UNEXPLAINED: True}
    return {
        "kernel": kernel,
        "position": position,
        **identity,
        "duration_ns": round(float(rows.value[launch.row])),
        "deviation_ns": launch.deviation_ns,
        "parts": [*parts, rest],
    }


def _words(value: str | float, unit: str) -> str:
    return value if isinstance(value, str) else setting_value(float(value), unit)
