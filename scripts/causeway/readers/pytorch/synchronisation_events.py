"""What Kineto writes of synchronisation, where `enable_cuda_sync_events` was set: which stream waits for an event that
another one recorded, and what the host waits for.

Source: Kineto, libkineto/src/CuptiActivity.cpp (`CudaSyncActivity`) and cupti_strings.cpp (`syncTypeString`).
"""

from causeway.core.codes import SYNCHRONISATIONS
from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import integer

_KINDS = {
    "Event Sync": "synchronise_event",
    "Stream Wait Event": "wait",
    "Stream Sync": "synchronise_stream",
    "Context Sync": "synchronise_device",
}
NOTHING = (1 << 32) - 1
"""Stream or event of synchronisations that concern none (CUPTI_SYNCHRONIZATION_INVALID_VALUE)."""


def kind_of(name: object) -> int:
    """Return the place of a synchronisation in `codes.SYNCHRONISATIONS`; 0, which is unknown, for other names.

    >>> kind_of("Stream Wait Event"), kind_of("Sync ?")
    (2, 0)
    """
    return SYNCHRONISATIONS.index(_KINDS.get(name, "unknown") if isinstance(name, str) else "unknown")


def stream_or_event(value: object) -> int:
    """Return the number of a stream or an event, `NULL` where there is none: absent, below 0 or `NOTHING`."""
    number = integer(value)
    return number if number is not None and 0 <= number < NOTHING else NULL
