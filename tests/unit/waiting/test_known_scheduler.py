"""What a replay says a change would do, beside the same program run again with that change by a known scheduler."""

from collections import defaultdict

import numpy as np
import pytest
from tests.unit.waiting.graph_samples import kernel_ns
from tests.unit.waiting.known_scheduler import Costs, ProgramOf, Run

from causeway.waiting.graph.blocking_copies import OTHER_MEMORY
from causeway.waiting.graph.graph_builder import GraphBuilder, Matched
from causeway.waiting.graph.link_ranks import linked
from causeway.waiting.graph.nodes import ALL_STREAMS, COLLECTIVE, COPY, KERNEL, NO_SCOPE, Texts
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed

CALLS = ("cudaLaunchKernel", "cudaDeviceSynchronize", "cudaStreamWaitEvent")
CHANGED = {
    "collectives_free": Costs(collective=0.0),
    "copies_free": Costs(copy=0.0),
    "launches_free": Costs(launch=0.0),
    "host_free": Costs(host=0.0),
    "no_straggler": Costs(slow=1.0),
}


def graph_of(run, with_events):
    """Return graph and links as they are read from an export of the run, with or without its events."""
    texts = Texts()
    names = np.array(
        [texts.number(f"k{number}") for number in range(5)] + [texts.number("collective"), texts.number("copy")]
    )
    start, end, rank, stream, name, correlation = run.work.T
    rows = {
        "start": start,
        "end": end,
        "kind": np.array([KERNEL] * 5 + [COLLECTIVE, COPY])[name],
        "name": names[name],
        "operator": 0 * rank - 1,
        "memory": np.full(len(rank), OTHER_MEMORY),
    }
    begun, done, caller, call, made = run.calls.T
    number = {key: at for at, key in enumerate(zip(caller.tolist(), made.tolist(), strict=True)) if key[1] >= 0}
    made_by = np.array([number.get(key, -1) for key in zip(rank.tolist(), correlation.tolist(), strict=True)])
    made_by = np.where(begun[made_by] <= start, made_by, -1)
    host = {
        "start": begun,
        "end": done,
        "name": np.array([texts.number(one) for one in CALLS])[call],
        "scope": np.where(call == 1, ALL_STREAMS, NO_SCOPE),
        "launches": np.isin(np.arange(len(call)), made_by),
    }
    ranks = list(range(len(run.ranks)))
    together = np.stack([start[(rank == one) & (name == 5)] for one in ranks])
    matched = Matched(ranks=ranks, start=together, bus_bytes=np.full(together.shape[1], -1))
    moment, waiting, on, source = run.waits.T
    events = np.stack([waiting, on, moment, source]) if with_events else np.zeros((4, 0), np.int64)
    builder = GraphBuilder(texts, Scratch())
    for one in ranks:
        own = np.flatnonzero(rank == one)
        mine = np.flatnonzero(caller == one)
        index = np.full(len(call) + 1, -1)
        index[mine] = builder.calls.rows + np.arange(mine.size)
        streams = builder.streams_of(rank[own], 0 * own, stream[own])
        builder.work.append(stream=streams, **{key: values[own] for key, values in rows.items()})
        builder.made_by.append(call=index[made_by[own]])
        threads = builder.threads_of(caller[mine], 0 * mine)
        builder.calls.append(thread=threads, **{key: values[mine] for key, values in host.items()})
        builder.ends_rank(one, in_order=False)
    builder.add_waits(events)
    graph, evidence = builder.graph([matched])
    return graph, linked(graph, evidence)


def errors_of(seed, with_events):
    """Return of each change the relative error of the replay and that of the naive bound."""
    program = ProgramOf(seed)
    slow = seed % program.ranks
    run = Run(program, slow_rank=slow)
    graph, links = graph_of(run, with_events)
    paths = CriticalPaths(graph, links)
    found = []
    before = measured(graph, links)
    for change in changes(graph, links, durations_of(graph, links), kernel_ns(paths, before)):
        after = replayed(graph, links, change.durations)
        spans = np.array([paths.span(after, rank) for rank in paths.ranks()])
        predicted = spans[:, 1].max() - spans[:, 0].min()
        if change.word == "nothing":
            assert predicted == run.span
            continue
        costs = CHANGED.get(change.word)
        if change.word == "kernel_faster":
            costs = Costs(kernel=int(change.name[1:]), kernel_factor=0.9)
        if costs is None:
            continue
        assert change.word != "no_straggler" or change.name == f"rank {slow}"
        true = Run(program, costs, slow_rank=slow).span
        found.append((change.word, abs(predicted - true) / true, abs(run.span - change.naive_ns - true) / true))
    return found


def errors_over(seeds, with_events):
    """Return the errors by change, shape (n, 2)."""
    errors = defaultdict(list)
    for seed in seeds:
        for word, *both in errors_of(seed, with_events):
            errors[word].append(both)
    return {word: np.array(both) for word, both in errors.items()}


@pytest.mark.parametrize("with_events", [True, False])
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(30), marks=pytest.mark.slow)], ids=["few", "all"])
def test_predicted_steps_are_those_of_the_changed_program(seeds, with_events):
    found = errors_over(seeds, with_events)
    assert (
        {*CHANGED, "kernel_faster"} >= set(found) >= {"collectives_free", "copies_free", "launches_free", "host_free"}
    )
    for word, errors in found.items():
        assert np.median(errors[:, 0]) <= 0.03, word
        assert errors[:, 0].max() <= 0.10, word
        assert np.median(errors[:, 0]) <= np.median(errors[:, 1]), word
