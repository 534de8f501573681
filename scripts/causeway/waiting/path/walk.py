"""Walks back from the last node of a rank to its first, each time to what bound the node's start."""

from causeway.numeric.compiled import I8, compiled_borrowing, int64
from causeway.waiting.graph.links import BY_CALL, BY_STREAM, NO_BOUND
from causeway.waiting.graph.nodes import BOUNDS, NODES

(
    KERNEL, COLLECTIVE, COPY, GRAPH, LAUNCH, HOST, START_UP, BETWEEN_CALLS, SAME_STREAM, OTHER_STREAM, LATE_RANK,
    FIRST, QUEUED, ENGINE, IN_MPI, TAKEN,
) = range(16)  # fmt: skip
"""What a piece of the path is: work by its kind; a call that launches; another call; from a call's return to the start
of work, at most the usual start-up latency; host code between calls; a gap in a stream; a gap behind work of another
stream; waiting for the last rank of a collective; before the first known node; enqueued on an idle stream and not
started, the rest of that time; a call that waits for an engine, which `critical_path` tells from other calls; in MPI
between calls, which it tells from host code; waiting while the GPU was another's, which `taken_pieces` tells.
"""
PIECE = ("begin", "end", "what", "code")
"""Fields of a piece; its code is the number of the work or the call, for `LATE_RANK` of the work, for `TAKEN` of
a text."""


@compiled_borrowing(int64(int64[:, ::1], int64, int64, int64, int64, int64))
def _write(pieces, n, begin, end, what, code):
    if end > begin:
        pieces[n, 0] = begin
        pieces[n, 1] = end
        pieces[n, 2] = what
        pieces[n, 3] = code
        n += 1
    return n


@compiled_borrowing(int64(int64[::1], int64, int64, NODES, BOUNDS, I8, int64, int64[:, ::1]))
def walk(state, reach, first, nodes, bounds, last_arrival, start_up, pieces):
    """Write the next pieces of the path, the last first; return how many.

    Parameters
    ----------
    state : array of int64, shape (3,)
        Where the path goes on: a piece of work or a call, the other -1, and the moment, ns; moved on, to -1 and -1 at
        the end of the walk.
    reach : int
        How many rows of work and of calls are gone over at once.
    first : int
        When the rank's time begins, ns: the rest before the first known node counts from there.
    nodes, bounds : NODES, BOUNDS
    last_arrival : array of int64, shape (collectives,), ns
        When the last rank arrived at each matched collective.
    start_up : int
        Usual start-up latency, ns.
    pieces : array of int64, shape (at least 8, 4), output
        `PIECE`; they adjoin and none is empty.
    """
    work = state[0]
    call = state[1]
    moment = state[2]
    top_work = work
    top_call = call
    n = 0
    while True:
        top_work = max(top_work, work)
        top_call = max(top_call, call)
        far = top_work - work > reach if work >= 0 else top_call - call > reach
        if far or n + 6 > len(pieces):
            state[0] = work
            state[1] = call
            state[2] = moment
            return n
        if work >= 0:
            arrival = moment
            if nodes.member[work] >= 0:
                arrival = max(min(last_arrival[nodes.member[work]], moment), nodes.start[work])
                n = _write(pieces, n, arrival, moment, COLLECTIVE, work)
                n = _write(pieces, n, nodes.start[work], arrival, LATE_RANK, work)
            else:
                n = _write(pieces, n, nodes.start[work], moment, int64(nodes.kind[work]), work)
            moment = min(moment, nodes.start[work])
            how = bounds.bound[work]
            if how == NO_BOUND:
                break
            if how == BY_CALL:
                call = int64(nodes.call[work])
                ready = min(nodes.call_end[call] + start_up, moment)
                n = _write(pieces, n, ready, moment, QUEUED, work)
                n = _write(pieces, n, nodes.call_end[call], ready, START_UP, work)
                moment = min(moment, nodes.call_end[call])
                work = -1
                n = _write(pieces, n, nodes.call_start[call], moment, LAUNCH, call)
                moment = min(moment, nodes.call_start[call])
            else:
                earlier = int64(bounds.before[work] if how == BY_STREAM else bounds.other[work])
                what = SAME_STREAM if how == BY_STREAM else OTHER_STREAM
                n = _write(pieces, n, nodes.end[earlier], moment, what, work)
                moment = min(moment, nodes.end[earlier])
                work = earlier
                continue
        elif bounds.call_work[call] >= 0:
            work = int64(bounds.call_work[call])
            n = _write(pieces, n, nodes.end[work], moment, HOST, call)
            moment = min(moment, nodes.end[work])
            call = -1
            continue
        else:
            n = _write(pieces, n, nodes.call_start[call], moment, LAUNCH if nodes.launches[call] else HOST, call)
            moment = min(moment, nodes.call_start[call])
        earlier = int64(bounds.call_before[call])
        if earlier < 0:
            break
        n = _write(pieces, n, nodes.call_end[earlier], moment, BETWEEN_CALLS, call)
        moment = min(moment, nodes.call_end[earlier])
        call = earlier
    state[:2] = -1
    return _write(pieces, n, first, moment, FIRST, -1)
