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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.causal.attribution.kernel_rows import (
    LEAST_ROWS,
    MOST_CAUSES,
    MOST_CONFIGURATIONS,
    KernelRows,
    as_codes,
)
from causeway.causal.attribution.mechanisms import Curve, DrawnRows, evenly, load_gcm
from causeway.causal.effects.time_model import MAX_ROWS

SLOWEST = 20
REFERENCE = 200
"""Launches that a slow one is compared with: their mean is known to a fourteenth of a standard deviation."""
LEAST_REFERENCE = 30
"""Fewer launches are no distribution to be slow in: as `scopes.MIN_KERNEL_ROWS`."""


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
        `LEAST_REFERENCE` rows are asked about.
    """
    names = [name for name in causes if name in rows.causes and len(np.unique(rows.causes[name])) > 1][:MOST_CAUSES]
    if not names or len(rows) < LEAST_ROWS:
        return []
    model = _Model(rows, names, edges, seed)
    deviation = rows.value - rows.mean
    counts = np.bincount(model.configuration)[model.configuration]
    slowest = np.argsort(np.where(counts >= LEAST_REFERENCE, -deviation, np.inf), kind="stable")[:SLOWEST]
    slowest = slowest[(deviation[slowest] > 0) & (counts[slowest] >= LEAST_REFERENCE)]
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
        numbers = np.unique(rows.configuration.astype(str), return_inverse=True)[1]
        self.configuration = numbers
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
                own = Curve([categories[one] for one in (*parents, last)], (len(parents),), weight)
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
