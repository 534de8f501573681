"""The made-up run of `rocprofv3_samples` as Perfetto's binary traces, written byte by byte: as rocprofv3, `rocpd convert`
and ROCm Systems Profiler write them. Nothing of the reader is used, nor a library of protobuf.
"""

import struct

from layouts.rocprofv3_samples import KERNELS, KINDS, SECRET

PACKETS = ("rocprofv3.pftrace", "perfetto-trace.proto")
"""Layouts of packets: of a cut between two nothing tells."""
WRITER = 3
PROCESS_TRACK = 0xC0FFEE
STATE_CLEARED = 1
STATE_NEEDED = 2


def varint(number):
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


def field(number, value):
    """Return a field: of an int its varint, of a float 8 bytes, of text or bytes with their length."""
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def packet(*fields, writer=WRITER):
    return field(1, message(*fields, (10, writer)))


class Trace:
    """A trace as it grows: texts are numbered at their first use, in the packet that uses them."""

    def __init__(self, pid):
        self.numbers = {}
        self.tracks = {}
        self.pid = pid
        clock = message((1, 6), (2, 10**15))
        command = message((1, pid), (2, SECRET), (6, SECRET))
        self.packets = [
            packet((6, message((1, clock))), (58, 6)),
            packet((41, 1), (13, STATE_CLEARED), (59, message((58, 64), (11, message((11, PROCESS_TRACK)))))),
            packet((60, message((1, PROCESS_TRACK), (3, command))), (13, STATE_NEEDED)),
        ]

    def interned(self, table, text, new):
        """Return the number of a text, which is added to `new` at its first use."""
        known = self.numbers.setdefault(table, {})
        if text not in known:
            known[text] = len(known) + 1
            new.append((table, message((1, known[text]), (2, text))))
        return known[text]

    def track(self, name, thread=None):
        """Return the track of a name, described at its first use."""
        if name not in self.tracks:
            uuid = self.tracks[name] = 1 << 63 | len(self.tracks) + 1
            about = message((1, uuid), (2, name), (5, PROCESS_TRACK))
            if thread is not None:
                about += field(4, message((1, self.pid), (2, thread)))
            self.packets.append(packet((60, about), (13, STATE_NEEDED)))
        return self.tracks[name]

    def slice(self, category, name, track, values, plain=()):
        """Add a slice: `values` are annotations with numbered names, `plain` those with their names beside them."""
        new = []
        notes = []
        for key, value in values.items():
            numbered = (1, self.interned(3, key, new))
            notes.append((4, message(numbered, _value(value))))
        notes += [(4, message((10, key), _value(value))) for key, value in dict(plain).items()]
        begin = message(
            (9, 1), (3, self.interned(1, category, new)), (10, self.interned(2, name, new)), (11, track), *notes
        )
        interned = [(12, message(*new))] if new else []
        self.packets.append(packet((8, 5), *interned, (11, begin), (13, STATE_NEEDED)))
        self.packets.append(packet((8, 7), (11, message((9, 2), (11, track))), (13, STATE_NEEDED)))

    def write(self, path):
        stats = message((1, message((2, 17), (18, 0))))
        path.write_bytes(b"".join([*self.packets, packet((35, stats), writer=1)]))
        return path


def _value(value):
    """Return the field of an annotation's value: whole numbers as unsigned, as C++ writes them."""
    return ({int: 3, float: 5, str: 6}[type(value)], value)


def _total(size):
    return size[0] * size[1] * size[2]


def _times(start, stop):
    return {"begin_ns": start, "end_ns": stop, "delta_ns": stop - start}


def write_rocprofv3(run, path, counters=True):
    """Write what `rocprofv3 --output-format pftrace` writes of a run."""
    trace = Trace(run["pid"])
    for operation, correlation, thread, *times in run["calls"]:
        track = trace.track(f"THREAD {thread}")
        notes = _times(*times) | {"tid": thread, "kind": 1, "operation": operation, "corr_id": correlation}
        trace.slice("hip_api", KINDS[1]["operations"][operation], track, notes)
    for text, correlation, thread, *times in run["ranges"]:
        notes = _times(*times) | {"tid": thread, "corr_id": correlation}
        trace.slice("marker_api", text, trace.track(f"THREAD {thread}"), notes)
    for kind, correlation, thread, start, stop, source, target, stream, size in run["copies"]:
        notes = _times(start, stop) | {"src_agent": f"Agent-{source}", "dst_agent": f"Agent-{target}"}
        notes |= {"copy_bytes": size, "corr_id": correlation, "tid": thread}
        track = trace.track(f"COPY to AGENT [{target}] STREAM [{stream}] (GPU)")
        trace.slice("memory_copy", KINDS[4]["operations"][kind], track, notes)
    counted = {id(launch): values for launch, values in run["counters"]} if counters else {}
    for one in run["launches"]:
        notes = _times(one["start"], one["stop"]) | {"kind": 11, "agent": f"Agent-{one['agent']}"}
        notes |= {"corr_id": one["correlation"], "queue": one["queue"], "tid": one["thread"]}
        notes |= {"kernel_id": one["kernel"], "private_segment_size": one["scratch"]}
        notes |= {"group_segment_size": KERNELS[one["kernel"]][1]}
        notes |= {"workgroup_size": _total(one["block"]), "grid_size": _total(one["grid"])}
        plain = {name: float(sum(values)) for name, values in counted.get(id(one), {}).items()}
        track = trace.track(f"COMPUTE AGENT [{one['agent']}] STREAM [{one['stream']}] (GPU)")
        trace.slice("kernel_dispatch", KERNELS[one["kernel"]][0], track, notes, plain)
    return trace.write(path)


def write_systems(run, path, device=None):
    """Write what ROCm Systems Profiler writes of a run: by stream, or, with the number of a device, by queue."""
    trace = Trace(run["pid"])
    for operation, correlation, thread, *times in run["calls"]:
        track = trace.track(f"thread {thread}", thread)
        notes = _times(*times) | {"corr_id": correlation, "stream": "0x0"}
        trace.slice("rocm_hip_api", KINDS[1]["operations"][operation], track, {}, notes)
    for text, correlation, thread, *times in run["ranges"]:
        notes = _times(*times) | {"corr_id": correlation}
        trace.slice("rocm_marker_api", text, trace.track(f"thread {thread}", thread), {}, notes)
    for kind, correlation, _, start, stop, source, target, stream, size in run["copies"]:
        notes = _times(start, stop) | {"corr_id": correlation, "stream_id": stream, "bytes": size}
        notes |= {"src_agent_id": 4 + source, "dst_agent_id": 4 + target, "operation": "copy"}
        track = trace.track(f"HIP Activity Stream {stream}")
        trace.slice("rocm_hip_stream", KINDS[4]["operations"][kind], track, {}, notes)
    for one in run["launches"]:
        notes = _times(one["start"], one["stop"]) | {"corr_id": one["correlation"], "stream_id": one["stream"]}
        notes |= {"queue": one["queue"], "dispatch_id": one["number"], "kernel_id": one["kernel"]}
        notes |= {"private_segment_size": one["scratch"], "group_segment_size": KERNELS[one["kernel"]][1]}
        notes |= {name: f"({','.join(map(str, one[size]))})" for name, size in _SIZES.items()}
        by_stream = f"HIP Activity Stream {one['stream']}"
        by_queue = f"GPU Kernel Dispatch [{device}] Queue {one['queue']}"
        category = "rocm_hip_stream" if device is None else "rocm_kernel_dispatch"
        trace.slice(
            category, KERNELS[one["kernel"]][0], trace.track(by_stream if device is None else by_queue), {}, notes
        )
    return trace.write(path)


_SIZES = {"workgroup_size": "block", "grid_size": "grid"}


def ends_with_a_packet(content):
    """Return whether bytes are whole packets: of a trace that was cut between two nothing tells."""
    at = 0
    while at < len(content):
        at += 1
        length = shift = 0
        while content[at : at + 1]:
            length |= (content[at] & 0x7F) << shift
            shift += 7
            at += 1
            if content[at - 1] < 0x80:
                break
        at += length
    return at == len(content)
