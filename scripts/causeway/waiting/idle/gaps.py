"""The gaps of devices, split by reason, in one sweep over their events ordered by start.

A gap [a, b) ends with the first launch or transfer that starts after all earlier ones of the device have ended. That
work was enqueued when its launch call returned, at q, or at b where the call was still running. Up to q the time was
the host's, from q on the device's; work enqueued before a waited for the device alone, and is queued behind other work.
"""

from causeway.events.device_events import NO_STREAM, UNKNOWN
from causeway.numeric.compiled import I4, I8, U4, compiled_borrowing, int64, void
from causeway.waiting.idle.reason_words import (
    BLOCKED_HOST,
    DEPENDENCY_STALLED,
    GRAPH_INTERNAL,
    LAUNCH_STARVED,
    START_UP,
    UNKNOWN_REASON,
)
from causeway.waiting.idle.stack_sweep import BLOCKING, CALL, CODE, THREAD, USER

NO_CALL, NO_THREAD, HOST, QUEUED, NODES, IDLE_START, QUEUED_START, LATE_START, HELD = MEANINGS = range(9)
"""What a piece's code means, beside its reason. `HOST`: an activity. `QUEUED`: 2 x the event's name, + 1 if of the same
stream, of the work that ended last before the gap. The others have no code. Work that was enqueued when all earlier
work had ended is behind none: what is longer than the usual latency is `LATE_START`, what is too long for any, `HELD`.
"""
PIECE = ("device", "reason", "meaning", "code", "begin", "end", "event")
STATE = ("first", "now", "reach", "name", "stream")
"""Fields of a piece of idle time, and of what is known of a device: its first start, the moment up to which its time
is accounted for, how far its events reach, name and stream of the event that reaches farthest.
"""
FIRST, NOW, REACH, NAME, STREAM = range(len(STATE))
_M2 = int64[:, ::1]
_M3 = int64[:, :, ::1]
_W = int64[::1]


@compiled_borrowing(int64(_M2, int64, int64, int64, int64, int64, int64, int64, int64))
def _write(pieces, n, device, reason, meaning, code, begin, end, event):
    """Write a piece that is not empty; return how many there are."""
    if end > begin:
        piece = pieces[n]
        piece[0] = device
        piece[1] = reason
        piece[2] = meaning
        piece[3] = code
        piece[4] = begin
        piece[5] = end
        piece[6] = event
        n += 1
    return n


@compiled_borrowing(int64(_M2, int64, int64, int64))
def _first_after(segments, low, high, moment):
    """Return the first segment of a thread, in [low, high), that ends after a moment."""
    while low < high:
        middle = (low + high) // 2
        if segments[middle, 2] > moment:
            high = middle
        else:
            low = middle + 1
    return low


@compiled_borrowing(int64(_M2, int64, int64, int64, int64, int64, int64, _M2, _W, _M2))
def _host_time(pieces, n, device, thread, a, q, event, segments, offsets, activities):
    """Split [a, q) by what the launching thread did; return how many pieces there are."""
    at = _first_after(segments, offsets[thread], offsets[thread + 1], a)
    moment = a
    while moment < q and at < offsets[thread + 1] and segments[at, 1] < q:
        begin = max(segments[at, 1], moment)
        end = min(segments[at, 2], q)
        code = segments[at, 3]
        n = _write(pieces, n, device, LAUNCH_STARVED, HOST, 0, moment, begin, event)
        reason = BLOCKED_HOST if activities[code, 0] == BLOCKING else LAUNCH_STARVED
        n = _write(pieces, n, device, reason, HOST, code, begin, end, event)
        moment = max(moment, end)
        at += 1
    return _write(pieces, n, device, LAUNCH_STARVED, HOST, 0, moment, q, event)


@compiled_borrowing(int64(int64, int64, int64, int64, _M2, _W), forceinline=True)
def _most_pieces(thread, a, start, returned, segments, offsets):
    """Return how many pieces the gap [a, start) may have."""
    if thread < 0:
        return 8
    low = _first_after(segments, offsets[thread], offsets[thread + 1], a)
    high = _first_after(segments, low, offsets[thread + 1], max(min(returned, start), a))
    return 8 + 2 * (high - low + 1)


@compiled_borrowing(
    int64(_M2, int64, int64, int64, int64, int64, int64, int64, int64, int64, int64, _M2, _M2, _W, _M2),
    forceinline=True,
)  # fmt: skip
def _split_gap(
    pieces, n, device, event, a, start, call, returned, queued, bound, longest, slots, segments, offsets, activities
):  # fmt: skip
    """Split [a, start), in which a device was idle before an event, by reason; return how many pieces there are.

    Parameters
    ----------
    pieces : array of int64, shape (rows, 7), output
        `PIECE`.
    n : int
        Pieces before.
    device, event : int
    a, start : int, ns
    call : int
        The event's call in `slots`; -1: not known.
    returned : int, ns
        When the work was enqueued, or `UNKNOWN`.
    queued : int
        The code of `QUEUED`.
    bound, longest : int, ns
        The usual start-up latency, and the longest that counts as one.
    slots, segments, offsets, activities : arrays
        As in `take_events`.
    """
    if returned == UNKNOWN:
        return _write(pieces, n, device, UNKNOWN_REASON, NO_CALL, 0, a, start, event)
    if call >= 0 and activities[slots[call, CODE], 1] and slots[call, USER] == device + 1:
        return _write(pieces, n, device, GRAPH_INTERNAL, NODES, 0, a, start, event)
    q = min(returned, start)
    if q <= a:
        ready = min(a + bound, start)
        n = _write(pieces, n, device, START_UP, QUEUED_START, 0, a, ready, event)
        return _write(pieces, n, device, DEPENDENCY_STALLED, QUEUED, queued, ready, start, event)
    if call >= 0:
        n = _host_time(pieces, n, device, slots[call, THREAD], a, q, event, segments, offsets, activities)
    else:
        n = _write(pieces, n, device, LAUNCH_STARVED, NO_THREAD, 0, a, q, event)
    ready = min(q + bound, start)
    late = max(ready, min(q + longest, start))
    n = _write(pieces, n, device, START_UP, IDLE_START, 0, q, ready, event)
    n = _write(pieces, n, device, START_UP, LATE_START, 0, ready, late, event)
    return _write(pieces, n, device, UNKNOWN_REASON, HELD, 0, late, start, event)


@compiled_borrowing(void(int64[::1], int64, int64, int64))
def _reach_to(known, end, name, stream):
    """Note how far an event reaches: in `STATE` of its device."""
    if end > known[REACH]:
        known[REACH] = end
        known[NAME] = name
        known[STREAM] = stream if stream != NO_STREAM else -1


@compiled_borrowing(
    int64(int64, I4, U4, I4, I8, I8, I8, I8, I4, I8, _M2, _M2, _W, _M2, int64, int64, _M2, _W, _W, _M2, _W)
)
def take_events(
    begin_at,
    devices,
    streams,
    stream_rows,
    starts,
    ends,
    called_at,
    returned,
    names,
    calls,
    slots,
    segments,
    offsets,
    activities,
    bound,
    longest,
    state,
    called,
    before,
    pieces,
    written,
):
    """Take events from number `begin_at` on; return the number of the first that was not taken, as the pieces are full.

    Parameters
    ----------
    begin_at : int
    devices, streams : arrays, shape (n,)
        Row of the device and number of the stream; events are ordered by start.
    stream_rows : array of int32, shape (n,) or (0,)
        Row of the stream in `called`; empty where that is not asked for.
    starts, ends, called_at, returned, names, calls : arrays, shape (n,)
        ns, begin and end of the call or `UNKNOWN`, a number that stands for the event's name, and the number of its
        call or -1.
    slots : array of int64, shape (a power of two, 4)
        Calls, `stack_sweep.SLOT`.
    segments, offsets : arrays of int64, shapes (segments, 4) and (threads + 1,)
        `stack_sweep.SEGMENT`, ordered by thread and time; where each thread's begin.
    activities : array of int64, shape (codes, 2)
        Priority, and whether it launches graphs.
    bound, longest : int, ns
        The usual start-up latency, and the longest that counts as one.
    state : array of int64, shape (devices, 5), updated
        `STATE`.
    called : array of int64, shape (streams,), updated
        When the call of the latest event of each stream began.
    before : array of int64, shape of `stream_rows`, output
        `called` of the event's stream before the event.
    pieces : array of int64, shape (rows, 7), output
        `PIECE`.
    written : array of int64, shape (1,), output
        How many pieces were written.
    """
    mask = slots.shape[0] - 1
    n = 0
    for i in range(begin_at, starts.size):
        d = int64(devices[i])
        start = starts[i]
        known = state[d]
        slot = calls[i] & mask
        call = slot if calls[i] >= 0 and slots[slot, CALL] == calls[i] + 1 else int64(-1)
        if known[FIRST] == UNKNOWN:
            known[FIRST] = start
            known[NOW] = start
        if start > known[NOW]:
            a = min(max(known[NOW], known[REACH]), start)
            thread = slots[call, THREAD] if call >= 0 else int64(-1)
            if n + _most_pieces(thread, a, start, returned[i], segments, offsets) > pieces.shape[0]:
                written[0] = n
                return i
            if a < start:
                queued = 2 * known[NAME] + (known[STREAM] == int64(streams[i]))
                n = _split_gap(
                    pieces, n, d, i, a, start, call, returned[i], queued, bound, longest, slots, segments, offsets,
                    activities,
                )  # fmt: skip
            known[NOW] = start
        if call >= 0:
            slots[call, USER] = d + 1
        if i < stream_rows.size:
            row = stream_rows[i]
            before[i] = called[row]
            if called_at[i] != UNKNOWN:
                called[row] = called_at[i]
        _reach_to(known, ends[i], names[i], int64(streams[i]))
    written[0] = n
    return starts.size


@compiled_borrowing(void(_M2, I8, _W))
def take_details(pieces, code_of, details):
    """Write the code of each piece's detail, int64 of shape (n,): its own code if it is an activity of the host, else
    that of its meaning, `code_of`, int64 of shape (9,).
    """
    for i in range(pieces.shape[0]):
        meaning = pieces[i, 2]
        details[i] = pieces[i, 3] if meaning == HOST else code_of[meaning]


@compiled_borrowing(void(_M2, _W))
def count_meanings(pieces, counts):
    """Count the pieces of each meaning into `counts`, int64 of shape (9,)."""
    for i in range(pieces.shape[0]):
        counts[pieces[i, 2]] += 1


@compiled_borrowing(void(_M2, I8, _M3))
def add_pieces(pieces, details, sums):
    """Add the lengths of pieces to the sums by device, reason and detail, int64 of shape (devices, reasons, codes)."""
    for i in range(pieces.shape[0]):
        piece = pieces[i]
        sums[piece[0], piece[1], details[i]] += piece[5] - piece[4]
