"""The gaps of devices, split by reason, in one sweep over their events ordered by start.

A gap [a, b) ends with the first launch or transfer that starts after all earlier ones of the device have ended. That
work was enqueued when its launch call returned, at q, or at b where the call was still running. Up to q the time was
the host's, from q on the device's; work enqueued before a waited for the device alone, and is queued behind other work.
"""

from causeway.events.device_events import NO_STREAM, UNKNOWN
from causeway.numeric.compiled import I4, I8, U4, compiled_borrowing, int64, record, void
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


GAP_EVENTS = record(
    "GAP_EVENTS",
    devices=I4,
    streams=U4,
    stream_rows=I4,
    starts=I8,
    ends=I8,
    called_at=I8,
    returned=I8,
    names=I4,
    calls=I8,
)
"""Events of devices, ordered by start.

Attributes
----------
devices : ndarray of int32, shape (n,)
    Row of the device.
streams : ndarray of uint32, shape (n,)
    Number of the stream.
stream_rows : ndarray of int32, shape (n,) or (0,)
    Row of the stream in `DEVICE_STATES.called`; empty where that is not asked for.
starts, ends, called_at, returned : ndarray of int64, shape (n,), ns
    Of the event; begin and end of its call, or `UNKNOWN`.
names : ndarray of int32, shape (n,)
    A number that stands for the event's name.
calls : ndarray of int64, shape (n,)
    The number of its call or -1.
"""


HOST_SEGMENTS = record(
    "HOST_SEGMENTS", slots=int64[:, ::1], segments=int64[:, ::1], offsets=int64[::1], activities=int64[:, ::1]
)
"""What the threads of the host did.

Attributes
----------
slots : ndarray of int64, shape (a power of two, 4), updated
    Calls, `stack_sweep.SLOT`.
segments : ndarray of int64, shape (segments, 4)
    `stack_sweep.SEGMENT`, ordered by thread and time.
offsets : ndarray of int64, shape (threads + 1,)
    Where the segments of each thread begin.
activities : ndarray of int64, shape (codes, 2)
    Priority, and whether it launches graphs.
"""


DEVICE_STATES = record("DEVICE_STATES", state=int64[:, ::1], called=int64[::1], before=int64[::1])
"""What is known of devices and streams from one block of events to the next.

Attributes
----------
state : ndarray of int64, shape (devices, 5), updated
    `STATE`.
called : ndarray of int64, shape (streams,), updated
    When the call of the latest event of each stream began.
before : ndarray of int64, shape of `GAP_EVENTS.stream_rows`, output
    `called` of the event's stream before the event.
"""


START_UPS = record("START_UPS", bound=int64, longest=int64)
"""The start-up latency that is usual, and the longest that counts as one.

Attributes
----------
bound, longest : int, ns
"""


GAP = record("GAP", device=int64, event=int64, begin=int64, end=int64)
"""A time [begin, end) in which a device was idle before an event.

Attributes
----------
device, event : int
begin, end : int, ns
"""
Gap = GAP.kind


@compiled_borrowing(int64(_M2, int64, GAP, int64, int64, int64, int64, int64))
def _write(pieces, n, gap, reason, meaning, code, begin, end):
    """Write a piece of a gap that is not empty; return how many there are."""
    if end > begin:
        piece = pieces[n]
        piece[0] = gap.device
        piece[1] = reason
        piece[2] = meaning
        piece[3] = code
        piece[4] = begin
        piece[5] = end
        piece[6] = gap.event
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


@compiled_borrowing(int64(_M2, int64, GAP, int64, int64, HOST_SEGMENTS))
def _host_time(pieces, n, gap, thread, q, host):
    """Split a gap up to q by what the launching thread did; return how many pieces there are."""
    segments = host.segments
    stop = host.offsets[thread + 1]
    row = _first_after(segments, host.offsets[thread], stop, gap.begin)
    moment = gap.begin
    while moment < q and row < stop and segments[row, 1] < q:
        begin = max(segments[row, 1], moment)
        end = min(segments[row, 2], q)
        code = segments[row, 3]
        n = _write(pieces, n, gap, LAUNCH_STARVED, HOST, 0, moment, begin)
        reason = BLOCKED_HOST if host.activities[code, 0] == BLOCKING else LAUNCH_STARVED
        n = _write(pieces, n, gap, reason, HOST, code, begin, end)
        moment = max(moment, end)
        row += 1
    return _write(pieces, n, gap, LAUNCH_STARVED, HOST, 0, moment, q)


@compiled_borrowing(int64(int64, int64, int64, int64, _M2, _W), forceinline=True)
def _most_pieces(thread, a, start, returned, segments, offsets):
    """Return how many pieces the gap [a, start) may have."""
    if thread < 0:
        return 8
    low = _first_after(segments, offsets[thread], offsets[thread + 1], a)
    high = _first_after(segments, low, offsets[thread + 1], max(min(returned, start), a))
    return 8 + 2 * (high - low + 1)


@compiled_borrowing(int64(_M2, int64, GAP, int64, int64, int64, START_UPS, HOST_SEGMENTS), forceinline=True)
def _split_gap(pieces, n, gap, call, returned, queued, start_up, host):
    """Split a gap by reason; return how many pieces there are.

    Parameters
    ----------
    pieces : array of int64, shape (rows, 7), output
        `PIECE`.
    n : int
        Pieces before.
    gap : GAP
    call : int
        The event's call in `host.slots`; -1: not known.
    returned : int, ns
        When the work was enqueued, or `UNKNOWN`.
    queued : int
        The code of `QUEUED`.
    start_up, host : START_UPS, HOST_SEGMENTS
    """
    a = gap.begin
    start = gap.end
    if returned == UNKNOWN:
        return _write(pieces, n, gap, UNKNOWN_REASON, NO_CALL, 0, a, start)
    if call >= 0 and host.activities[host.slots[call, CODE], 1] and host.slots[call, USER] == gap.device + 1:
        return _write(pieces, n, gap, GRAPH_INTERNAL, NODES, 0, a, start)
    q = min(returned, start)
    if q <= a:
        ready = min(a + start_up.bound, start)
        n = _write(pieces, n, gap, START_UP, QUEUED_START, 0, a, ready)
        return _write(pieces, n, gap, DEPENDENCY_STALLED, QUEUED, queued, ready, start)
    if call >= 0:
        n = _host_time(pieces, n, gap, host.slots[call, THREAD], q, host)
    else:
        n = _write(pieces, n, gap, LAUNCH_STARVED, NO_THREAD, 0, a, q)
    ready = min(q + start_up.bound, start)
    late = max(ready, min(q + start_up.longest, start))
    n = _write(pieces, n, gap, START_UP, IDLE_START, 0, q, ready)
    n = _write(pieces, n, gap, START_UP, LATE_START, 0, ready, late)
    return _write(pieces, n, gap, UNKNOWN_REASON, HELD, 0, late, start)


@compiled_borrowing(void(int64[::1], int64, int64, int64))
def _reach_to(state, end, name, stream):
    """Note how far an event reaches: in `STATE` of its device."""
    if end > state[REACH]:
        state[REACH] = end
        state[NAME] = name
        state[STREAM] = stream if stream != NO_STREAM else -1


@compiled_borrowing(int64(int64, GAP_EVENTS, HOST_SEGMENTS, START_UPS, DEVICE_STATES, _M2, _W))
def take_events(begin_at, events, host, start_up, device_states, pieces, written):
    """Take events from number `begin_at` on; return the number of the first that was not taken, as the pieces are full.

    Parameters
    ----------
    begin_at : int
    events, host, start_up, device_states : GAP_EVENTS, HOST_SEGMENTS, START_UPS, DEVICE_STATES
    pieces : array of int64, shape (rows, 7), output
        `PIECE`.
    written : array of int64, shape (1,), output
        How many pieces were written.
    """
    slots = host.slots
    mask = slots.shape[0] - 1
    n = 0
    for i in range(begin_at, events.starts.size):
        d = int64(events.devices[i])
        start = events.starts[i]
        state = device_states.state[d]
        number = events.calls[i]
        slot = number & mask
        call = slot if number >= 0 and slots[slot, CALL] == number + 1 else int64(-1)
        stream = int64(events.streams[i])
        if state[FIRST] == UNKNOWN:
            state[FIRST] = start
            state[NOW] = start
        if start > state[NOW]:
            a = min(max(state[NOW], state[REACH]), start)
            thread = slots[call, THREAD] if call >= 0 else int64(-1)
            returned = events.returned[i]
            if n + _most_pieces(thread, a, start, returned, host.segments, host.offsets) > pieces.shape[0]:
                written[0] = n
                return i
            if a < start:
                queued = 2 * state[NAME] + (state[STREAM] == stream)
                n = _split_gap(pieces, n, Gap(d, i, a, start), call, returned, queued, start_up, host)
            state[NOW] = start
        if call >= 0:
            slots[call, USER] = d + 1
        if i < events.stream_rows.size:
            row = events.stream_rows[i]
            device_states.before[i] = device_states.called[row]
            if events.called_at[i] != UNKNOWN:
                device_states.called[row] = events.called_at[i]
        _reach_to(state, events.ends[i], events.names[i], stream)
    written[0] = n
    return events.starts.size


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
