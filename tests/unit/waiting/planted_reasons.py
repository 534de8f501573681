"""Training jobs in which one thing makes the device wait, and the reason that the results give.

Jobs are drawn from a seed: layers, kernels, ranks, how long what is planted lasts (8 % to 60 % of a step) and on which
ranks. All jobs load data, allocate and take locks for a moment while the device has work queued, and reduce gradients
beside compute; a planted job does one of it for long while nothing is queued, or lets compute wait for each reduction.
"""

from collections import Counter

import numpy as np
from tests.unit.waiting.graph_samples import kernel_ns
from tests.unit.waiting.known_scheduler import (
    CODE,
    COLLECTIVE,
    COMPUTE,
    LAUNCH,
    NETWORK,
    SYNCHRONISE,
    WAIT,
    Item,
    Run,
)
from tests.unit.waiting.test_known_scheduler import CALLS, graph_of
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.clock import Clock
from causeway.core.tables import read_json, write_json
from causeway.core.vocabulary import NOT_IDLE
from causeway.efficiency.ranks.find_stragglers import find_stragglers
from causeway.findings.first_screen.losses import late_rank_facts
from causeway.findings.first_screen.run_facts import RunFact, RunTables
from causeway.findings.record import NOTICEABLE
from causeway.readers.normalise import normalise
from causeway.waiting.explain_waiting import sums_of, waiting_table
from causeway.waiting.idle.export_pass import explain_export
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed
from lab.parallel_job import write_parallel_job

LOADER, ALLOCATION, LOCK = range(1, 4)
MARKS = {
    LOADER: ("ranges", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    ALLOCATION: ("calls", "cudaMalloc"),
    LOCK: ("system_calls", "pthread_mutex_lock"),
}
"""Table and name of what a host does, by the name of its items."""
SAID = {"loader": "data loader", "allocation": "cudaMalloc", "lock": "lock: pthread_mutex_lock"}
"""What the finding on waiting has to say of each planted reason."""
PLANTED = {"loader": LOADER, "allocation": ALLOCATION, "lock": LOCK}
EVENT = "event"
STEPS = 8


class PlantedJob:
    """Items of a job, as `known_scheduler.ProgramOf`; `planted` is a key of `PLANTED`, `EVENT` or None."""

    def __init__(self, seed, planted):
        self.rng = np.random.default_rng([seed, 77])
        self.ranks = int(self.rng.integers(2, 5))
        self.items = []
        kernels = int(self.rng.integers(10, 24))
        ns = self.rng.uniform(30_000, 150_000, kernels)
        late = self.rng.random(self.ranks) < 0.5
        late[int(self.rng.integers(0, self.ranks))] = True
        share = self.rng.uniform(0.08, 0.6)
        reduction = ns.sum() * self.rng.uniform(0.02, 0.05)
        for _ in range(STEPS):
            if planted in PLANTED:
                long = np.where(late, self.around(ns.sum() * share, 0.2), 300)
                self.items.append(Item(CODE, long, name=PLANTED[planted]))
            for number in range(kernels):
                self.launched(COMPUTE, number % 4, self.around(ns[number], 0.03))
                if number in (3, 4, 5):
                    self.items.append(Item(CODE, self.around(9_000, 0.5), name=number - 2))
                if number in (1, 2, 3, 4):
                    self.items.append(Item(WAIT, self.around(900), NETWORK, source=COMPUTE))
                    self.launched(NETWORK, COLLECTIVE, np.full(self.ranks, self.around(reduction, 0.2)[0]))
                    if planted == EVENT:
                        self.items.append(Item(WAIT, self.around(900), COMPUTE, source=NETWORK))
            self.items.append(Item(SYNCHRONISE, self.around(1_500)))

    def around(self, value, spread=0.1):
        """Return a duration of each rank."""
        return np.maximum(value * self.rng.lognormal(0, spread, self.ranks), 300).astype(np.int64)

    def launched(self, stream, name, ns):
        """Add host code and a launch."""
        self.items.append(Item(CODE, self.around(2_000, 0.4)))
        self.items.append(Item(LAUNCH, self.around(4_000, 0.2), stream, name, ns))


def tables_of(run):
    """Return the rows of an export of a run, by table."""
    shared = [
        {"start_ns": start, "duration_ns": end - start, "rank": rank, "stream": stream, "correlation": number}
        | {"configuration": int(name == COLLECTIVE)}
        for start, end, rank, stream, name, number in run.work.tolist()
    ]
    tables = {"launches": shared, "calls": [], "ranges": [], "system_calls": [], "dependencies": []}
    for start, end, rank, name, number in run.calls.tolist():
        one = {"start_ns": start, "duration_ns": end - start, "rank": rank, "thread": 1, "name": CALLS[name]}
        tables["calls"].append(one | {"correlation": number if number >= 0 else None})
    for start, end, rank, name in run.marks:
        table, text = MARKS[name]
        one = {"start_ns": start, "duration_ns": end - start, "rank": rank, "thread": 1, "name": text}
        tables[table].append(one | ({"kind": "annotation"} if table == "ranges" else {}))
    for start, rank, stream, source in run.waits.tolist():
        one = {"start_ns": start, "duration_ns": 0, "rank": rank, "kind": "wait"}
        tables["dependencies"].append(one | {"stream": stream, "source_stream": source})
    return tables


def named(seed, planted, folder):
    """Return the planted reasons that the results of a job name: those in the finding on waiting, and `EVENT` where a
    replay without collectives saves a noticeable part of the run.
    """
    run = Run(PlantedJob(seed, planted), slow_rank=-1)
    write_export(folder, tables_of(run))
    sums = sums_of(explain_export(folder, {}))
    waits: Counter = Counter()
    for row in waiting_table([sums]).to_pylist():
        if row["reason"] not in NOT_IDLE:
            waits[row["detail"]] += row["wait_ns"]
    most = max(waits, key=lambda detail: waits[detail], default="")
    is_noticeable = waits.total() >= NOTICEABLE * len(run.ranks) * int(run.span)
    reasons = {word for word, said in SAID.items() if is_noticeable and said in most}
    graph, links = graph_of(run, with_events=True)
    paths = CriticalPaths(graph, links)
    before = measured(graph, links)
    for change in changes(graph, links, durations_of(graph, links), kernel_ns(paths, before)):
        if change.word == "collectives_free":
            after = replayed(graph, links, change.durations)
            spans = np.array([paths.span(after, rank) for rank in paths.ranks()])
            if run.span - (spans[:, 1].max() - spans[:, 0].min()) >= NOTICEABLE * run.span:
                reasons.add(EVENT)
    return reasons


def late_in_its_stage(seed, slow, folder):
    """Return the ranks of a pipeline of four ranks in two stages that findings call late because their kernels run
    longer, and the rank that is slow, or None.
    """
    rank = seed % 4 if slow else None
    job = {"kind": "pipeline", "seed": seed, "iterations": 10, "slow_rank": rank, "slow": 1.3}
    write_parallel_job(job, folder / "job")
    folders = [folder / f"e{number}" for number in range(4)]
    for number, one in enumerate(folders):
        normalise(folder / "job" / f"rank{number}.json.gz", one, export=one.name, source="job", rank=None, node=None)
    exports = {one.name: {"ranks": [number], **vars(Clock())} for number, one in enumerate(folders)}
    document = {"exports": exports, "method": "none", "residual_ns": 0, "reason": "one clock"}
    write_json(document, folder / "clocks.json")
    find_stragglers("job", folders, folder / "clocks.json", 1, folder / "s.json", folder / "s.parquet")
    whole = RunFact(elapsed_ns=1, devices=4, ranks=4, gpus=(), parts={}, steps=None, recorded=(), launches=0, query="")
    late = late_rank_facts(RunTables(dataset="job", stragglers=read_json(folder / "s.json")), whole)
    return {f"rank {one.ranks[0]}" for one in late if one.cause == "compute" and one.is_often}, rank
