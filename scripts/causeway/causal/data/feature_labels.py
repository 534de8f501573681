"""What features are called in sentences: no names of columns where there are words for what they hold."""

NAMES = {
    "launches_in_flight": "launches in flight on the device",
    "transfers_in_flight": "transfers in flight on the device",
    "h2d_bytes_in_flight": "bytes in flight from the host",
    "d2h_bytes_in_flight": "bytes in flight to the host",
    "d2d_bytes_in_flight": "bytes in flight within the device",
    "p2p_bytes_in_flight": "bytes in flight between devices",
    "last_h2d_bytes": "size of the last input from the host",
    "queue_ns": "wait in the queue",
    "idle_before_ns": "idle time of the device before the start",
    "iteration_position": "position in the iteration",
    "since_start_ns": "time since the start of the run",
    "previous_deviation": "deviation of the launch before",
    "transfer_bytes": "size of the linked transfer",
    "transfer_copy_kind": "direction of the linked transfer",
    "grid_x": "grid size",
    "grid_y": "grid size in y",
    "grid_z": "grid size in z",
    "block_x": "block size",
    "block_y": "block size in y",
    "block_z": "block size in z",
    "registers_per_thread": "registers per thread",
    "static_shared_bytes": "static shared memory",
    "dynamic_shared_bytes": "dynamic shared memory",
    "rank": "rank",
    "device": "device",
    "node": "node",
    "stream": "stream",
}
"""Features of launches and their context."""
UNITS = ("_hz", "_ratio", "_bytes", "_ns", "_w", "_percent")
METRICS = "device metrics"
ACRONYMS = frozenset("gpc sys sm sms gpu dram pcie nvlink rx tx l1 l2 hbm".split())
ABOUT = {"target": "the target", "value": "the measured value", None: "the target"}
"""What a sign or slope is about."""


def called(feature: str, group: str = "") -> str:
    """Return what a feature is called; a counter or a column of a table keeps the name that its user knows."""
    if feature in NAMES:
        return NAMES[feature]
    if group != METRICS:
        return feature
    bare = next((feature.removesuffix(unit) for unit in UNITS if feature.endswith(unit)), feature)
    return " ".join(word.upper() if word in ACRONYMS else word for word in bare.split("_")).replace("SMS", "SMs")


def capital(words: str) -> str:
    """Return words as the beginning of a sentence; a name with an underscore stays as it is."""
    return words if "_" in words.partition(" ")[0] else words[:1].upper() + words[1:]
