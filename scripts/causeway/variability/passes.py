"""The passes over the rows: moments of the value, then targets and their bins, then what the quartiles of large kernels still need.

Within a pass ranks work alone on their shares; between passes they add up exact integers.
"""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np

from causeway.logs import LOG, Progress
from causeway.moments import exponent_range
from causeway.ranks import Ranks
from causeway.variability.bins import BinStreams, BinTable, empty_bins
from causeway.variability.dataset import Dataset, Settings
from causeway.variability.quantiles import QuartileSearch
from causeway.variability.sources import Share, Source
from causeway.variability.summaries import Histograms, Timeline, merge
from causeway.variability.targets import MEMORY_STALL, Counter, Deviation, Sample, Stall
from causeway.variability.transfers import TransferWindow, ends, latest_ends

NEVER = np.iinfo(np.int64).min


class Passes:
    """Runs the passes and holds what they find, on every rank.

    Attributes
    ----------
    values : Moments
        Of the value, per kernel.
    launches : ndarray of int64
        Rows with the value, per configuration.
    launch_ends, transfer_ends : dict of str to ndarray of int64
        Latest end of each group of rows, per export.
    targets, timelines : list of Deviation or Stall, list of Timeline
    histograms : Histograms
    quartiles : ndarray of float64, shape (kernels, 3)
    bins : list of BinTable
        One per target; on rank 0 only, None elsewhere.
    """

    def __init__(self, settings: Settings, dataset: Dataset, ranks: Ranks, targets: list[str]) -> None:
        self.settings, self.dataset, self.ranks = settings, dataset, ranks
        self.sampler, self.value = dataset.sampler, dataset.sampler.value
        self.traced = not isinstance(self.value, Counter)
        self._means()
        transfers = {export: rows for export, rows in dataset.transfers.items() if rows is not None}
        self.transfer_ends = dict(zip(transfers, latest_ends(list(transfers.values()), ranks), strict=True))
        self.targets = [self._stall() if name == MEMORY_STALL else Deviation(name, self.moments) for name in targets]
        self._bins()
        self._quartiles()

    def window(self, source: Source) -> TransferWindow | None:
        """Return a fresh window over a trace's transfers; None for counters."""
        if not self.traced:
            return None
        latest = self.transfer_ends.get(source.export, np.empty(0, np.int64))
        return TransferWindow(self.dataset.transfers[source.export], latest, self.settings.link_window_ns)

    def stream(self, what: str, columns: list[str], begin: Callable[[Share], None] = lambda share: None) -> Iterator[tuple[Share, Sample]]:
        """Yield this rank's rows, after a call of `begin` for each share; tell how far it is, and how fast it was."""
        total = sum(group.rows for share in self.dataset.shares for group in share.groups())
        progress = Progress(f"{self.settings.dataset}: {what}", total, "rows")
        began, done = time.process_time(), 0
        for share in self.dataset.shares:
            begin(share)
            for chunk, position in share.chunks(columns):
                yield share, self.sampler.sample(share.source, chunk, position)
                done += chunk.size
                progress.at(done)
        tell_rate(what, done, time.process_time() - began)

    def _means(self) -> None:
        """Sum up the value's moments per group and per kernel, and find the latest end of each group of launches."""
        ranks, columns = self.ranks, self.sampler.columns()
        if isinstance(self.value, Counter):
            found = []
            with ranks.together():
                for _, sample in self.stream("range of values", columns):
                    found.append(exponent_range(sample.value))
            every = [pair for part in ranks.exchange(found) for pair in part if pair] or [(0, 0)]
            self.value.exponents = (min(low for low, _ in every), max(high for _, high in every))
        self.moments = self.value.moments(self.sampler.groups)
        self.launch_ends = {source.export: np.full(len(source.rows.groups), NEVER) for source in self.dataset.sources}
        with ranks.together():
            for share, sample in self.stream("means", [*columns, "start_ns"]):
                self.moments.add(sample.group, sample.value)
                if self.traced:
                    place = bisect_right(share.source.rows.groups, sample.chunk.row, key=lambda group: group.row) - 1
                    latest = self.launch_ends[share.source.export]
                    latest[place] = max(latest[place], ends(sample.chunk).max())
        merge(ranks, self.moments)
        self.launch_ends = {export: ranks.highest(latest) for export, latest in self.launch_ends.items()}
        per_group = len(self.sampler.ranks) if self.sampler.per_rank else 1
        self.launches = self.moments.count.reshape(-1, per_group).sum(axis=1)
        kernel = np.repeat(self.dataset.configurations.kernel_of, per_group)
        self.values = self.value.moments(len(self.dataset.configurations.kernels))
        np.add.at(self.values.table, kernel, self.moments.table)
        np.minimum.at(self.values.low, kernel, self.moments.low)
        np.maximum.at(self.values.high, kernel, self.moments.high)

    def _stall(self) -> Stall:
        """Return the memory stall; no transfer is longer than the time from the first start to the latest end."""
        spans = [
            int(latest.max()) - self.dataset.transfers[export].groups[0].first
            for export, latest in self.transfer_ends.items()
            if latest.size
        ]
        return Stall(self.sampler.groups, float(max([0, *spans, int(self.values.high.max())])))

    def _bins(self) -> None:
        """Make the targets, cut them into bins, and describe the kernels."""
        dataset, ranks, kernels = self.dataset, self.ranks, len(self.dataset.configurations.kernels)
        columns = [*self.sampler.columns(), *dataset.features, *(["device"] if self.traced else [])]
        self.search = QuartileSearch(self.values.count, self.value.keys(self.values.low), self.value.keys(self.values.high))
        self.histograms = Histograms(self.values.low.astype(float), self.values.high.astype(float))
        self.timelines = [Timeline(kernels, dataset.span, target.largest) for target in self.targets]
        width = 1 + len(dataset.features)
        streams = [[BinStreams(source.ranks, dataset.width, width) for source in dataset.sources] for _ in self.targets]
        windows: dict[str, TransferWindow | None] = {}

        def begin(share: Share) -> None:
            windows[share.source.export] = self.window(share.source)

        with ranks.together():
            for share, sample in self.stream("bins", columns, begin):
                self.histograms.add(sample.kernel, sample.value.astype(float))
                self.search.add(sample.kernel, self.value.keys(sample.value))
                features = [sample.column(name) for name in dataset.features]
                place = dataset.sources.index(share.source)
                for target, timeline, stream in zip(self.targets, self.timelines, streams, strict=True):
                    values = target.of(sample, windows[share.source.export])
                    timeline.add(sample.kernel, sample.position, values)
                    stream[place].add_present(sample.number, sample.position, [values, *features])
        self.histograms.counts = ranks.total(self.histograms.counts)
        self.bins = []
        for target, timeline, stream in zip(self.targets, self.timelines, streams, strict=True):
            timeline.table = ranks.total(timeline.table)
            if isinstance(target, Stall):
                merge(ranks, target.moments)
                target.finish()
            with ranks.together():
                mine = BinTable.join([empty_bins(width), *(part.finish() for part in stream)])
            parts = ranks.collect(mine)
            self.bins.append(BinTable.join(parts) if parts else None)

    def _quartiles(self) -> None:
        """Read the values again, as often as the exact quartiles of the kernels need it."""
        self.search.narrow(self.ranks)
        while self.search.open:
            with self.ranks.together():
                for _, sample in self.stream("quartiles of kernels", self.sampler.columns()):
                    self.search.add(sample.kernel, self.value.keys(sample.value))
            self.search.narrow(self.ranks)
        self.quartiles = self.search.quartiles(self.value.from_keys(self.search.order_statistics()))


def tell_rate(what: str, rows: int, seconds: float) -> None:
    """Log how fast rank 0 was; the log of other ranks goes nowhere."""
    LOG.info("%s: %d rows in %.2f CPU-s, %.1f million rows per CPU-s", what, rows, seconds, rows / max(seconds, 1e-6) / 1e6)
