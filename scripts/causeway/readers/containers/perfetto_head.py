"""How a binary trace of Perfetto begins. Standard library only: detection runs at workflow start."""

FILES = ("*.pftrace", "*.perfetto-trace", "perfetto-trace*.proto")
"""What rocprofv3, Perfetto and ROCm Systems Profiler call their traces."""

PACKETS_LOOKED_AT = 16
SEQUENCE_ID = 10
"""Field of a packet: the number of its writer, which every packet has that a program wrote."""


def begins_like_perfetto(head: bytes) -> bool:
    """Return whether bytes are packets of Perfetto, of which one names its writer.

    JAX's XPlane is of the same encoding: each of its fields 1 to 6 is another one's here, and none has field 10.

    >>> begins_like_perfetto(bytes([0x0A, 2, 0x50, 1])), begins_like_perfetto(bytes([0x0A, 9, 0x50, 1]))
    (True, False)
    """
    start = 0
    for _ in range(PACKETS_LOOKED_AT):
        bounds = packet_at(head, start)
        if bounds is None or bounds[0] < 0:
            return False
        fields = fields_of(head[bounds[0] : bounds[1]])
        if fields is None:
            return False
        if (SEQUENCE_ID, 0) in fields:
            return bounds[1] <= len(head)
        start = bounds[1]
    return False


def packet_at(content: bytes, start: int) -> tuple[int, int] | None:
    r"""Return where the packet that starts at a byte begins and ends, its mark and length left out.

    Parameters
    ----------
    content : bytes
    start : int

    Returns
    -------
    (int, int) or None
        The end may lie beyond the content; (-1, -1) where no packet starts there; None where its length is not known.

    >>> packet_at(b"\x0a\x03abc", 0), packet_at(b"\x0a\x83", 0), packet_at(b"x", 0), packet_at(b"", 0)
    ((2, 5), None, (-1, -1), None)
    """
    if start < len(content) and content[start] != 0x0A:  # field 1, bytes with a length
        return -1, -1
    varint = _varint(content, start + 1)
    return None if varint is None else (varint[1], varint[1] + varint[0])


def fields_of(packet: bytes) -> set[tuple[int, int]] | None:
    """Return the numbers and wire types of a message's fields, None where the bytes are no message.

    >>> sorted(fields_of(bytes([0x50, 1, 0x12, 1, 65]))), fields_of(bytes([0x12, 5, 65]))
    ([(2, 2), (10, 0)], None)
    """
    fields = set()
    position = 0
    while position < len(packet):
        key = _varint(packet, position)
        if key is None:
            return None
        number = key[0] >> 3
        kind = key[0] & 7
        position = key[1]
        if kind in (0, 2):
            value = _varint(packet, position)
            if value is None:
                return None
            position = value[1] + (value[0] if kind == 2 else 0)
        elif kind in (1, 5):
            position += 8 if kind == 1 else 4
        else:
            return None
        if number == 0 or position > len(packet):
            return None
        fields.add((number, kind))
    return fields


def _varint(content: bytes, start: int) -> tuple[int, int] | None:
    """Return the number of variable length at a byte and where it ends; None where it does not end."""
    number = 0
    for position in range(start, min(start + 10, len(content))):
        number |= (content[position] & 0x7F) << 7 * (position - start)
        if content[position] < 0x80:
            return number, position + 1
    return None
