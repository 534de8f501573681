"""Fields of a trace's events: times, exactly, and those arguments that the column map names; events of one category."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from operator import attrgetter
from types import GenericAlias
from typing import Any, NamedTuple

import msgspec
import numpy as np

from causeway.core.schemas import LAUNCH_SHAPE
from causeway.core.schemas.launch_threads import AS_LAUNCHED, BLOCKS
from causeway.readers.common.constants import LONGEST_NS, NULL
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import Misfits, integer, integers
from causeway.readers.containers.chrome_json import Event
from causeway.readers.sink.processes import MOST_RANKS

LONGEST_NUMBER = 64
"""Characters of a number beyond which it is no time; Python converts no text of more than 4,300 digits."""
MOST_BEGUN = 1 << 16
"""Events that have begun and not ended and are followed at once: far more than any program nests on all threads."""
MULTIPROCESSORS = ("numSms", "multiProcessorCount", "smCount")
GIVEN_WORK_ITEMS = frozenset({"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"})
"""Launch calls of HIP that are given a grid in work-items; the others are given blocks."""
_ANY = msgspec.json.Decoder(dict[str, Any], float_hook=str)
_THREE_DECIMALS = re.compile(r"(?:[0-9]{1,15}\.[0-9]{3}\n)+")


class CategoryEvents(NamedTuple):
    """Events of one category, n of them, their arguments, and their processes' codes, shape (n,)."""

    events: list[Event]
    args: list[Any]
    process: np.ndarray

    def where(self, mask: list[bool]) -> "CategoryEvents":
        """Return those events for which a mask of n is true."""
        kept = zip(self.events, self.args, mask, strict=True)
        some = [(event, args) for event, args, is_kept in kept if is_kept]
        return CategoryEvents([event for event, _ in some], [args for _, args in some], self.process[np.array(mask)])


def nanoseconds(value: object) -> int | None:
    """Return microseconds as whole nanoseconds, exactly; None if it is no finite number.

    Digits beyond the nanosecond (left by tools that go through floating point) are rounded half to even.

    >>> nanoseconds("4458676983543.183"), nanoseconds(12), nanoseconds("0.1065")
    (4458676983543183, 12000, 106)
    """
    if type(value) is int:
        return value * 1000
    if not isinstance(value, str) or len(value) > LONGEST_NUMBER:
        return None
    if value[-4:-3] == "." and (digits := value[:-4] + value[-3:]).isdecimal() and digits.isascii():
        return int(digits)
    whole, _, fraction = value.partition(".")
    if len(fraction) <= 3 and whole.isdecimal() and (not fraction or fraction.isdecimal()) and value.isascii():
        return int(whole) * 1000 + int(fraction.ljust(3, "0"))
    try:
        exact = Decimal(value) * 1000
        return int(exact.to_integral_value()) if exact.is_finite() and abs(exact) < 10**19 else None
    except ArithmeticError:  # text that is no number, or an exponent beyond all bounds
        return None


def times_ns(values: list) -> tuple[np.ndarray, Misfits]:
    """Return times in microseconds, as `Event` has them, in whole nanoseconds.

    Returns
    -------
    times : ndarray of int64, shape (n,)
        `NULL` where absent, or where it does not fit.
    misfits : Counter of str
        How many do not fit, by the kind of issue.
    """
    try:
        text = "\n".join(values) + "\n"
    except TypeError:  # integers, or something absent
        text = ""
    if _THREE_DECIMALS.fullmatch(text):
        return np.fromstring(text.replace(".", ""), np.int64, sep="\n"), Counter()
    return integers([nanoseconds(value) for value in values])


def spans_ns(events: Sequence[Event]) -> tuple[np.ndarray, np.ndarray, Misfits]:
    """Return when events start and end.

    Returns
    -------
    start, end : ndarray of int64, shape (n,), ns
        `NULL` where absent, or where it does not fit.
    misfits : Counter of str
        How many times do not fit, by the kind of issue.
    """
    start, misfits = times_ns([event.ts for event in events])
    length, more = times_ns([event.dur for event in events])
    # no overflow; the sink counts these
    end = np.where(length > LONGEST_NS, np.maximum(start, 0) + LONGEST_NS + 1, start + length)
    return start, np.where((start == NULL) | (length == NULL), NULL, end), misfits + more


class BegunEvents:
    """Events that are written as two, one where they begin and one where they end, thread by thread.

    Attributes
    ----------
    ended : list of (Event, object)
        Those that have ended: the event of their begin, and the time of their end as the trace has it.
    lost : Counter of str
        By category, ends without a begin, and begins beyond `MOST_BEGUN`.
    """

    def __init__(self) -> None:
        self.ended: list[tuple[Event, object]] = []
        self.lost: Counter[str] = Counter()
        self._begun: dict[tuple[str, str], list[tuple[Event, bool]]] = {}
        self._waiting = 0

    def take(self, events: Iterable[Event], is_read: Callable[[str | None], bool]) -> None:
        """Take events in the order of the trace; those of categories that are not read are followed, as an end may name
        none.
        """
        for event in events:
            if event.ph == "B" and self._waiting < MOST_BEGUN:
                self._begun.setdefault(self._thread(event), []).append((event, is_read(event.cat)))
                self._waiting += 1
                continue
            stack = self._begun.get(self._thread(event), []) if event.ph == "E" else []
            position = next((i for i in reversed(range(len(stack))) if event.cat in (None, stack[i][0].cat)), None)
            if position is not None:
                begin, is_wanted = stack.pop(position)
                self._waiting -= 1
                if is_wanted:
                    self.ended.append((begin, event.ts))
            elif event.ph in ("B", "E") and is_read(event.cat):
                self.lost[event.cat or ""] += 1

    def left(self) -> list[Event]:
        """Return the begins of what has not ended, and forget them."""
        unended = [event for stack in self._begun.values() for event, is_wanted in stack if is_wanted]
        self._begun.clear()
        self._waiting = 0
        return unended

    @staticmethod
    def _thread(event: Event) -> tuple[str, str]:
        return str(event.pid), str(event.tid)


class ThreadNumbers:
    """Numbers of threads; names of threads, and numbers that do not fit, get negative ones."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, tid: object) -> int:
        """Return a thread's number, `NULL` where it is absent."""
        if type(tid) is int and 0 <= tid < 1 << 63:
            return tid
        number = integer(tid)
        if number is None or number < 0:
            number = self._numbers.setdefault(str(tid), -1 - len(self._numbers)) if tid is not None else NULL
        return number

    def column(self, tids: list) -> np.ndarray:
        """Return the numbers of n threads, int64 of shape (n,)."""
        if set(map(type, tids)) == {int} and min(tids) >= 0 and max(tids) < 1 << 63:
            return np.array(tids, np.int64)
        return np.array([self.of(tid) for tid in tids], np.int64)


class ArgumentDecoder:
    """Decode the arguments of events, those of the map alone.

    Parameters
    ----------
    names : mapping of str to str
        The map's arguments: raw name -> our name.
    as_text : sequence of str
        Of our names, those of values that are given as they are written, `msgspec.Raw`.
    """

    def __init__(self, names: Mapping[str, str], as_text: Sequence[str] = ()) -> None:
        self._names = names
        self._as_text = frozenset(as_text)
        fields = [
            (ours, msgspec.Raw if ours in self._as_text else Any, msgspec.field(name=raw, default=None))
            for raw, ours in names.items()
        ]
        self._struct = msgspec.defstruct("Arguments", fields, gc=False)
        self._decode = msgspec.json.Decoder(GenericAlias(list, self._struct), float_hook=str).decode

    def decode(self, events: Sequence[Event]) -> list[Any]:
        """Return for each event a struct with our names; None where an argument is absent, or they are no object."""
        texts = [event.args for event in events]
        try:
            return self._decode(b"[%s]" % b",".join([text if text else b"{}" for text in texts]))
        except (ValueError, RecursionError, TypeError):
            return [self._struct_of(text) for text in texts]

    def _struct_of(self, args: msgspec.Raw | dict) -> Any:
        if isinstance(args, dict):
            values = {ours: args[raw] for raw, ours in self._names.items() if raw in args}
            texts = {ours: msgspec.Raw(msgspec.json.encode(values[ours])) for ours in values.keys() & self._as_text}
            return self._struct(**values | texts)
        try:
            return self._decode(b"[%s]" % args)[0] if args else self._struct()
        except (ValueError, RecursionError, TypeError):
            return self._struct()


def format_version(facts: Mapping[str, object]) -> str | None:
    """Return the versions that a trace's top level states, as one text."""
    keys = [key for key in ("schemaVersion", "cupti_version", "roctracer_version") if key in facts]
    names = {"schemaVersion": "schema", "cupti_version": "cupti", "roctracer_version": "roctracer"}
    return " ".join(f"{names[key]} {clean_text(str(facts[key]))[:20]}" for key in keys) or None


def grid_counts(facts: Mapping[str, object], calls: Collection[str]) -> str:
    """Return what the grids of a trace count, a word of `launch_threads`, but those of calls of `GIVEN_WORK_ITEMS`.

    On AMD's devices libkineto writes the sizes of the call that launched (RoctracerLogger.cpp, RocprofLogger.cpp):
    blocks, but work-items of those that are given a global size; without calls nobody can tell.

    Parameters
    ----------
    facts : mapping
        The top level of the trace.
    calls : collection of str
        Names of its runtime calls.
    """
    is_amd = any(key in facts for key in ("roctracer_version", "hip_runtime_version"))
    return AS_LAUNCHED if is_amd and not any(name.startswith("hip") for name in calls) else BLOCKS


def stated_rank(facts: Mapping[str, object]) -> int | None:
    """Return the rank that the top level of a trace states; None where it states none."""
    info = facts.get("distributedInfo")
    rank = integer(info.get("rank")) if isinstance(info, dict) else None
    return rank if rank is not None and 0 <= rank < MOST_RANKS else None


def stated_size(facts: Mapping[str, object]) -> int | None:
    """Return of how many ranks the job is, as the top level of a trace states it; None where it does not."""
    info = facts.get("distributedInfo")
    size = integer(info.get("world_size")) if isinstance(info, dict) else None
    return size if size is not None and 0 < size <= MOST_RANKS else None


def devices_of(facts: Mapping[str, object]) -> list[dict]:
    """Return the devices that a trace's top level lists: number, name, multiprocessors and memory of each. PyTorch 1.8
    and 1.9 have other names for the list and for the multiprocessors; PaddlePaddle has smCount.
    """
    devices = facts.get("deviceProperties", facts.get("computeProperties"))
    return [
        {
            "device": number,
            "name": device.get("name"),
            "multiprocessors": integer(next((device[name] for name in MULTIPROCESSORS if name in device), None)),
            "memory_bytes": _memory(device),
        }
        for device in (devices if isinstance(devices, list) else [])
        if isinstance(device, dict) and (number := integer(device.get("id"))) is not None
    ]


def _memory(device: Mapping[str, object]) -> int | None:
    """Return the bytes of a device's memory; PaddlePaddle 2.3 wrote the lower half of the number alone."""
    size = integer(device.get("totalGlobalMem"))
    return None if size is not None and size < 1 << 32 and "smCount" in device else size


def along_axes(sizes: list) -> list[Sequence]:
    """Return the sizes of grids or blocks along x, y and z, None where an event has none.

    >>> along_axes([[4, 2, 1], None, [8]])
    [(4, None, 8), (2, None, None), (1, None, None)]
    """
    if set(map(type, sizes)) != {list} or set(map(len, sizes)) != {3}:
        sizes = [[*size, None, None, None][:3] if isinstance(size, list) else (None, None, None) for size in sizes]
    return list(zip(*sizes, strict=True)) or [(), (), ()]


def launch_shape(args: Sequence[Any], names: Iterable[str]) -> dict[str, list]:
    """Return the columns of `LAUNCH_SHAPE` that events state, by our names; None where one states none.

    Parameters
    ----------
    args : sequence of struct, n of them
        The events' arguments under our names.
    names : iterable of str
        Our names of arguments. Sizes along three axes may stand in one argument (`grid`) or in three (`grid_x`).
    """
    shape: dict[str, list] = {}
    for ours in names:
        if ours in LAUNCH_SHAPE and ours[:-2] not in ("grid", "block"):
            shape[ours] = list(map(attrgetter(ours), args))
        elif ours in ("grid", "block"):
            axes = along_axes(list(map(attrgetter(ours), args)))
            for axis, values in zip("xyz", axes, strict=True):
                alone = map(attrgetter(f"{ours}_{axis}"), args)
                shape[f"{ours}_{axis}"] = [
                    single if size is None else size for size, single in zip(values, alone, strict=True)
                ]
    return shape


def mentioned(args: Sequence[msgspec.Raw | dict], key: bytes) -> bool:
    """Return whether arguments of events may have a key: those that are text are searched, not decoded."""
    if any(isinstance(fields, dict) and key.decode() in fields for fields in args if type(fields) is not msgspec.Raw):
        return True
    return key in b"\n".join([fields for fields in args if type(fields) is msgspec.Raw])


def all_arguments(args: msgspec.Raw | dict) -> dict:
    """Return all arguments of an event, none if they are no object; numbers with a fraction are text."""
    try:
        return args if isinstance(args, dict) else _ANY.decode(args)
    except (ValueError, RecursionError, TypeError):
        return {}
