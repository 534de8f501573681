"""Perfetto's binary traces (.pftrace, .proto): the slices of a file, one packet at a time, in bounded memory.

A trace is a row of packets in protobuf's encoding. Those of one writer (a sequence) name their texts once, by numbers
that hold until the sequence starts anew. The fields that are read stand in `config/columns/perfetto_packets.yaml`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from causeway.core.files.yaml_files import column_map
from causeway.readers.containers.perfetto_head import packet_at

MOST_PACKET_BYTES = 64 << 20
"""A longer packet is damage: Perfetto's buffers cut them at a few megabytes."""
READ_BYTES = 1 << 20
MOST_PARENTS = 16
"""Tracks above a track that are looked at for its process."""

SLICE_BEGIN = 1
STATE_CLEARED = 1
STATE_NEEDED = 2
"""Flags of a packet's `sequence_flags`."""

_TABLES = {
    "category": "event_categories",
    "name": "event_names",
    "key": "debug_annotation_names",
    "text": "debug_annotation_string_values",
}
"""What a sequence names by numbers."""


def _packet_class() -> type[message.Message]:
    """Return the class of a packet, made from `config/columns/perfetto_packets.yaml`."""
    messages = column_map("perfetto_packets")
    file = descriptor_pb2.FileDescriptorProto(name="causeway/perfetto.proto", package="causeway", syntax="proto2")
    for name, fields in messages.items():
        message_type = file.message_type.add(name=name)
        for label, (number, kind) in fields.items():
            repeated = kind.startswith("repeated ")
            kind = kind.removeprefix("repeated ")
            made = message_type.field.add(name=label, number=number, label=3 if repeated else 1)
            if kind in messages:
                made.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
                made.type_name = f".causeway.{kind}"
            else:
                made.type = getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{kind.upper()}")
            if label.endswith(("_value", "_value_iid")):
                made.oneof_index = 0
        if name == "Annotation":
            message_type.oneof_decl.add(name="value")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("causeway.Packet"))


_Packet = _packet_class()


class Slice(NamedTuple):
    """The beginning of a slice: what it is, its annotations, and where it stands.

    `category` and `name` are '' where the trace gives none or its text was lost. `track` is the name of its track,
    `process` and `thread` are the system's numbers of them; None where the trace does not say.
    """

    category: str
    name: str
    values: dict[str, int | float | str]
    track: str
    process: int | None
    thread: int | None


@dataclass
class _Sequence:
    """What the packets of one writer refer to."""

    texts: dict[str, dict[int, str]] = field(default_factory=lambda: {table: {} for table in _TABLES})
    track: int = 0
    cleared: bool = False


@dataclass
class _Track:
    name: str = ""
    parent: int = 0
    process: int | None = None
    thread: int | None = None


class PerfettoFile:
    """The slices of one file.

    Parameters
    ----------
    stream : binary file
        From its beginning.
    on_progress : callable or None
        Gets the number of bytes read so far, for progress.

    Attributes
    ----------
    damaged : int
        Packets that could not be decoded.
    lost : int
        Packets that the trace itself says were lost, and those that refer to lost ones.
    cut : bool
        Whether the file ends within a packet, or what follows is none.
    """

    def __init__(self, stream: BinaryIO, on_progress: Callable[[int], None] | None = None) -> None:
        self.damaged = self.lost = 0
        self.cut = False
        self._stream = stream
        self._on_progress = on_progress
        self._done = 0
        self._sequences: dict[int, _Sequence] = {}
        self._tracks: dict[int, _Track] = {}

    def slices(self) -> Iterator[Slice]:
        """Give each slice that begins, in the order of the file."""
        for content in self._packets():
            packet = _Packet()
            try:
                packet.ParseFromString(content)
            except message.DecodeError:
                self.damaged += 1
                continue
            sequence = self._sequence(packet)
            if packet.HasField("track_descriptor"):
                self._describe(packet.track_descriptor)
            if packet.HasField("trace_stats"):
                self._count_lost(packet.trace_stats)
            if packet.HasField("track_event") and packet.track_event.type == SLICE_BEGIN:
                if packet.sequence_flags & STATE_NEEDED and not sequence.cleared:
                    self.lost += 1
                    continue
                yield self._slice(packet.track_event, sequence)

    def _packets(self) -> Iterator[bytes]:
        """Give the bytes of each packet."""
        left = b""
        while block := self._stream.read(READ_BYTES):
            self._done += len(block)
            if self._on_progress is not None:
                self._on_progress(self._done)
            left += block
            start = 0
            while (bounds := packet_at(left, start)) is not None:
                begin, end = bounds
                if begin < 0 or end - begin > MOST_PACKET_BYTES:
                    self.cut = True
                    return
                if end > len(left):
                    break
                yield left[begin:end]
                start = end
            left = left[start:]
        self.cut |= bool(left)

    def _sequence(self, packet: message.Message) -> _Sequence:
        """Return the sequence of a packet, with what the packet adds to it."""
        number = packet.trusted_packet_sequence_id
        sequence = self._sequences.get(number)
        if sequence is None or packet.sequence_flags & STATE_CLEARED or packet.incremental_state_cleared:
            cleared = bool(packet.sequence_flags & STATE_CLEARED or packet.incremental_state_cleared)
            sequence = self._sequences[number] = _Sequence(cleared=cleared)
        elif packet.previous_packet_dropped:
            self.lost += 1
        if packet.HasField("trace_packet_defaults"):
            sequence.track = packet.trace_packet_defaults.track_event_defaults.track_uuid
        if packet.HasField("interned_data"):
            for table, label in _TABLES.items():
                texts = sequence.texts[table]
                for interned in getattr(packet.interned_data, label):
                    texts[interned.iid] = _text(interned.name)
        return sequence

    def _describe(self, described: message.Message) -> None:
        track = self._tracks.setdefault(described.uuid, _Track())
        track.name = _text(described.name or described.static_name) or track.name
        track.parent = described.parent_uuid or track.parent
        if described.HasField("thread"):
            track.thread = described.thread.tid
            track.process = described.thread.pid
        elif described.HasField("process"):
            track.process = described.process.pid

    def _count_lost(self, stats: message.Message) -> None:
        for buffer in stats.buffer_stats:
            self.lost += buffer.chunks_overwritten + buffer.chunks_discarded + buffer.trace_writer_packet_loss

    def _slice(self, event: message.Message, sequence: _Sequence) -> Slice:
        texts = sequence.texts
        if event.category_iids:
            category = texts["category"].get(event.category_iids[0], "")
        else:
            category = _text(event.categories[0]) if event.categories else ""
        name = texts["name"].get(event.name_iid, "") if event.name_iid else _text(event.name)
        keys = texts["key"]
        values: dict[str, int | float | str] = {}
        for annotation in event.debug_annotations:
            kind = annotation.WhichOneof("value")
            if kind is None:
                continue
            value = getattr(annotation, kind)
            if kind == "string_value":
                value = _text(value)
            elif kind == "string_value_iid":
                value = texts["text"].get(value, "")
            number = annotation.name_iid
            values[keys.get(number, "") if number else _text(annotation.name)] = value
        uuid = event.track_uuid if event.HasField("track_uuid") else sequence.track
        track = self._tracks.get(uuid, _Track())
        return Slice(category, name, values, track.name, self._process(uuid), track.thread)

    def _process(self, uuid: int) -> int | None:
        """Return the process of a track or of the nearest track above it that has one."""
        for _ in range(MOST_PARENTS):
            track = self._tracks.get(uuid)
            if track is None:
                return None
            if track.process is not None:
                return track.process
            uuid = track.parent
        return None


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
