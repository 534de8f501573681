"""Write official.pftrace with the schema that Perfetto itself publishes, as rocprofv3 fills it.

    pip install perfetto==0.59.1
    python tests/data/perfetto/write_official.py

Three launches, a copy and a marker of one process; texts are numbered where rocprofv3's macros number them.
"""

from pathlib import Path

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

TRACE = perfetto.Trace()
WRITER = 2
PROCESS = 11
NUMBERS: dict[tuple[str, str], int] = {}


def packet():
    one = TRACE.packet.add()
    one.trusted_packet_sequence_id = WRITER
    one.sequence_flags = perfetto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
    return one


def number(one, table, text):
    """Return the number of a text, which the packet names at its first use."""
    key = (table, text)
    if key not in NUMBERS:
        NUMBERS[key] = len(NUMBERS) + 1
        getattr(one.interned_data, table).add(iid=NUMBERS[key], name=text)
    return NUMBERS[key]


def describe(uuid, name, parent=PROCESS):
    about = packet().track_descriptor
    about.uuid = uuid
    about.name = name
    about.parent_uuid = parent


def note(one, key, value):
    made = one.track_event.debug_annotations.add()
    made.name_iid = number(one, "debug_annotation_names", key)
    if isinstance(value, str):
        made.string_value = value
    else:
        made.uint_value = value


def begin(category, name, track, values, counters=()):
    one = packet()
    one.track_event.type = perfetto.TrackEvent.TYPE_SLICE_BEGIN
    one.track_event.track_uuid = track
    one.track_event.category_iids.append(number(one, "event_categories", category))
    one.track_event.name_iid = number(one, "event_names", name)
    for key, value in values.items():
        note(one, key, value)
    for key, value in dict(counters).items():
        made = one.track_event.debug_annotations.add()
        made.name = key
        made.double_value = value
    end = packet()
    end.track_event.type = perfetto.TrackEvent.TYPE_SLICE_END
    end.track_event.track_uuid = track


def times(start, stop):
    return {"begin_ns": start, "end_ns": stop, "delta_ns": stop - start}


def launch(name, track, start, stop, waves):
    sizes = {"private_segment_size": 0, "group_segment_size": 0, "workgroup_size": 256, "grid_size": 4096}
    about = {"kind": 11, "agent": "Agent-1", "corr_id": start, "queue": 1, "tid": 4321, "kernel_id": 1}
    begin("kernel_dispatch", name, track, times(start, stop) | about | sizes, {"SQ_WAVES": waves})


def main():
    first = packet()
    first.sequence_flags = perfetto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
    first.trace_packet_defaults.timestamp_clock_id = 64
    first.trace_packet_defaults.track_event_defaults.track_uuid = PROCESS
    about = packet().track_descriptor
    about.uuid = PROCESS
    about.process.pid = 4321
    about.process.cmdline.append("/home/someone/solver")
    describe(21, "COMPUTE AGENT [1] STREAM [2] (GPU)")
    describe(22, "COMPUTE AGENT [1] STREAM [7] (GPU)")
    describe(23, "COPY to AGENT [1] STREAM [2] (GPU)")
    describe(24, "THREAD 1 (4321)")
    launch("void axpy<double>(int)", 21, 1_000_000, 1_004_000, 64.0)
    launch("reduce(float*)", 21, 1_005_000, 1_014_500, 128.0)
    launch("void axpy<double>(int)", 22, 1_020_000, 1_020_250, 64.0)
    ends = {"src_agent": "Agent-0", "dst_agent": "Agent-1", "copy_bytes": 4096, "corr_id": 9, "tid": 4321}
    begin("memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", 23, times(990_000, 995_000) | ends)
    begin("marker_api", "step", 24, times(980_000, 1_030_000) | {"tid": 4321, "corr_id": 8})
    Path(__file__).with_name("official.pftrace").write_bytes(TRACE.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
