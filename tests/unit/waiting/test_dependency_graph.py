"""What each node waited for, the critical path and the replay, against the rules applied node by node."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from path_pieces import pieces_of
from tests.unit.waiting.graph_samples import PlainLinks, in_time, path_rows, random_graph

from causeway.waiting.graph.blocking_copies import DRAINED_NS
from causeway.waiting.graph.link_ranks import links_of, sweep
from causeway.waiting.graph.links import BY_CALL, BY_STREAM, BY_WORK, NO_BOUND
from causeway.waiting.path import walk
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.replay.replayed import durations_of, replayed, returning_ns

START_UP = 40
WORDS = {NO_BOUND: None, BY_STREAM: "stream", BY_WORK: "work", BY_CALL: "call"}
SEEDS = range(2100)


def linked(seed):
    graph, explicit = random_graph(seed)
    links = links_of(graph, START_UP, explicit)
    for rank in range(len(graph.ranks)):
        sweep(graph, links, rank)
    links.between = 3
    return graph, explicit, links


def none(number):
    return None if number < 0 else int(number)


PARTS = pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 7))])


@PARTS
def test_each_node_waited_for_what_the_rules_say_and_the_path_is_walked_back_by_them(part):
    for seed in SEEDS[part::7]:
        graph, explicit, links = linked(seed)
        plain = PlainLinks(graph, explicit, START_UP)
        n = plain.n
        m = plain.m
        mine = [(WORDS[links.bound[i]], none(links.before[i]), none(links.other[i])) for i in range(n)]
        assert mine == plain.work, seed
        assert [(none(links.call_before[c]), none(links.call_work[c])) for c in range(m)] == plain.calls, seed
        paths = CriticalPaths(graph, links)
        schedule = measured(graph, links)
        for rank in paths.ranks():
            begin, end = paths.span(schedule, rank)
            pieces = pieces_of(paths, schedule, rank)
            assert (pieces[0, 0], pieces[-1, 1]) == (begin, end)
            assert (pieces[1:, 0] == pieces[:-1, 1]).all()
            assert painted(plain, schedule, paths, rank) == Counter(
                {
                    key: sum(int(p[1] - p[0]) for p in pieces if (int(p[2]), int(p[3])) == key)
                    for key in {(int(p[2]), int(p[3])) for p in pieces}
                }
            ), seed


def painted(plain, schedule, paths, rank):
    """Return ns by what and code, from a recursion over nodes with the moment as its argument."""
    graph = plain.g
    work = graph.work
    calls = graph.calls
    found = Counter()

    def give(begin, end, what, code):
        if end > begin:
            found[what, int(code)] += int(end - begin)
        return min(begin, end)

    nodes = [(work.end[i], 1, i) for i in range(plain.n) if graph.stream_rank[work.stream[i]] == rank]
    nodes += [(calls.end[c], 0, c) for c in range(plain.m) if graph.thread_rank[calls.thread[c]] == rank]
    moment, is_work, node = max(nodes)
    while node is not None:
        if is_work:
            g = work.member[node]
            if g >= 0:
                arrived = min(max(work.start[j] for j in range(plain.n) if work.member[j] == g), moment)
                moment = give(max(arrived, work.start[node]), moment, walk.COLLECTIVE, node)
                moment = give(work.start[node], moment, walk.LATE_RANK, node)
            else:
                moment = give(work.start[node], moment, int(work.kind[node]), node)
            how, before, other = plain.work[node]
            if how == "call":
                call = work.call[node]
                moment = give(calls.end[call] + START_UP, moment, walk.QUEUED, node)
                moment = give(calls.end[call], moment, walk.START_UP, node)
                moment = give(calls.start[call], moment, walk.LAUNCH, call)
                is_work = 0
                node = call
            elif how is not None:
                what = walk.SAME_STREAM if how == "stream" else walk.OTHER_STREAM
                earlier = before if how == "stream" else other
                moment = give(work.end[earlier], moment, what, node)
                node = earlier
                continue
            else:
                break
        elif plain.calls[node][1] is not None:
            waited = plain.calls[node][1]
            moment = give(work.end[waited], moment, walk.HOST, node)
            is_work = 1
            node = waited
            continue
        else:
            moment = give(calls.start[node], moment, walk.LAUNCH if calls.launches[node] else walk.HOST, node)
        earlier = plain.calls[node][0]
        if earlier is not None:
            moment = give(calls.end[earlier], moment, walk.BETWEEN_CALLS, node)
        node = earlier
    give(paths.span(schedule, rank)[0], moment, walk.FIRST, -1)
    return found


@PARTS
def test_the_replay_is_the_longest_path_through_the_dependencies(part):
    for seed in SEEDS[part::7]:
        graph, _, links = linked(seed)
        plain = durations_of(graph, links)
        same = replayed(graph, links, plain)
        assert found(same) == found(measured(graph, links)), seed
        assert (same.bound == links.bound).all(), seed
        rng = np.random.default_rng(seed)
        changed = replace(
            plain,
            work=np.where(rng.random(plain.work.size) < 0.3, 0, plain.work),
            call=plain.call * rng.integers(0, 2, plain.call.size),
            gap=np.where(rng.random(plain.gap.size) < 0.3, 0, plain.gap),
        )
        assert longest(graph, links, changed) == found(replayed(graph, links, changed)), seed


def found(schedule):
    columns = schedule.start, schedule.end, schedule.call_start, schedule.call_end
    return tuple(column.tolist() for column in columns)


def longest(graph, links, durations):
    """Return starts and ends of work and calls: each the longest way to it, in plain Python."""
    work = graph.work
    calls = graph.calls
    n = work.start.size
    m = calls.start.size
    returning = returning_ns(graph, links)
    start = [0] * n
    end = [0] * n
    begin = [0] * m
    back = [0] * m
    done = []
    for node in in_time(graph):
        if node >= n + m:
            c = node - n - m
            rank = graph.thread_rank[calls.thread[c]]
            waited = links.call_work[c]
            own = min(calls.end[c] - calls.start[c], returning) if waited >= 0 else durations.call[c]
            ways = [begin[c] + own]
            for s in range(graph.stream_rank.size):
                if graph.stream_rank[s] != rank or calls.scope[c] not in (-2, s):
                    continue
                latest = [j for j in done if work.stream[j] == s][-2:][::-1]
                drained = calls.end[c] + (DRAINED_NS if calls.launches[c] and calls.scope[c] >= 0 else 0)
                for j in [j for j in latest if work.end[j] <= drained][:1]:
                    tail = calls.end[c] - work.end[j]
                    if end[j] > begin[c]:
                        ways.append(end[j] + (tail if j == waited else min(tail, returning)))
            back[c] = max(ways)
        elif node >= n:
            c = node - n
            p = links.call_before[c]
            begin[c] = calls.start[c] if p < 0 else back[p] + durations.gap[c]
            back[c] = begin[c] + durations.call[c]
        else:
            ways = []
            for p, word, least in ((links.before[node], BY_STREAM, 3), (links.other[node], BY_WORK, 3)):
                if p >= 0:
                    gap = work.start[node] - work.end[p]
                    ways.append(end[p] + (gap if links.bound[node] == word else min(gap, least)))
            c = work.call[node]
            if c >= 0:
                binds = links.bound[node] == BY_CALL
                if calls.end[c] <= work.start[node]:
                    gap = work.start[node] - calls.end[c]
                    ways.append(back[c] + (gap if binds else min(gap, START_UP)))
                else:
                    gap = work.start[node] - calls.start[c]
                    if calls.scope[c] == -1:
                        gap = min(gap, durations.call[c])
                    elif not binds:
                        gap = min(gap, START_UP)
                    ways.append(begin[c] + gap)
            start[node] = max(ways, default=work.start[node])
            g = work.member[node]
            end[node] = start[node] + (durations.work[node] if g < 0 else work.end[node] - work.start[node])
            done.append(node)
            joint = [j for j in done if g >= 0 and work.member[j] == g]
            if g >= 0 and len(joint) == graph.members[g]:
                arrival = max(start[j] for j in joint)
                for j in joint:
                    end[j] = max(start[j], arrival + durations.work[j])
    return tuple([int(one) for one in column] for column in (start, end, begin, back))


@pytest.mark.parametrize("graphs", [60, pytest.param(200, marks=pytest.mark.slow)])
def test_steps_add_up_to_their_durations_and_the_run_to_its_span(graphs):
    for seed in range(graphs):
        graph, _, links = linked(seed)
        paths = CriticalPaths(graph, links)
        schedule = measured(graph, links)
        rng = np.random.default_rng(10_000 + seed)
        steps = {}
        for row in paths.ranks():
            begin, end = paths.span(schedule, row)
            marks = np.unique(rng.integers(begin - 300, end + 300, 9))
            steps[graph.ranks[row]] = marks[:-1], marks[1:], np.arange(marks.size - 1)
        rows = path_rows(paths, schedule, steps)
        total = Counter()
        for rank, step, _, _, _, ns in rows:
            assert ns > 0
            total[rank, step] += ns
        for row in paths.ranks():
            begin, end = paths.span(schedule, row)
            rank = graph.ranks[row]
            assert total[rank, -1] == end - begin
            for low, high, step in zip(*steps[rank], strict=True):
                assert total[rank, int(step)] == high - low
