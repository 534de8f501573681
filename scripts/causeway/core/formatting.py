"""Numbers and names as people read them, in figures, pages and sentences: units, digits, and what is cut or left out.

Three functions write times and values with units, because three kinds of text want different digits: `time` and
`quantity` (figures and pages: no trailing zeros, decimal prefixes), `time_three_digits` (findings: always three
digits) and `setting_value` (what-ifs: binary prefixes for bytes, ratios in percent).
"""

import math
import re
from collections.abc import Iterable, Sequence

from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL

NOT_MEASURED = "–"
"""Stands where a number would stand that was not measured."""
TIME_UNITS = (("s", 1e9), ("ms", 1e6), ("µs", 1e3), ("ns", 1.0))
"""Units of time with their nanoseconds, largest first."""
NANOSECONDS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
"""Nanoseconds of the units of columns."""
SI_PREFIXES = (("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
BINARY_UNITS = (("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10), ("bytes", 1.0))
FREQUENCY_UNITS = (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3), ("Hz", 1.0))
NO_BREAK_SPACE = "\u00a0"
UNIT_AFTER_NUMBER = re.compile(
    r"(?<=[0-9]) (?=(?:%|×|B/s|[kMGT]?B(?:/s)?|points|W|{})(?![\w%]))".format(
        "|".join(name for units in (TIME_UNITS, BINARY_UNITS, FREQUENCY_UNITS) for name, _ in units)
    )
)
"""The space between a number and its unit."""
NAME_LENGTH = 60
"""Characters of a kernel's name in a sentence."""
QUOTED_LENGTH = 80
"""Characters of a kernel's name in quotes, where a terminal shows it."""
VALUES = {
    KERNEL_VARIABILITY: "the durations",
    MEMORY_STALL: "the memory stall beyond its copy's size and direction",
}
"""What is measured of the targets of traces. What bytes and direction of the copy explain of a memory stall by its
definition is taken out before causes are searched.
"""


def unbroken(text: str) -> str:
    """Return a text with a no-break space between each number and its unit, so that no line ends between them.

    >>> unbroken("8.23 s of 27.8 s, 30 % at 9.8 GB/s").count(NO_BREAK_SPACE), unbroken("2 streams")
    (4, '2 streams')
    """
    return UNIT_AFTER_NUMBER.sub(NO_BREAK_SPACE, text)


def unit_for(value: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """Return the largest unit and its size that `value` holds at least once, the last one otherwise; `units` come
    largest first.
    """
    return next(((name, size) for name, size in units if abs(value) >= size), units[-1])


def time_unit(largest_ns: float) -> tuple[str, float]:
    """Return the SI unit, and its nanoseconds, in which `largest_ns` reads best; one unit serves a whole axis."""
    return unit_for(largest_ns, TIME_UNITS)


def significant(value: float, digits: int = 3) -> str:
    """Return a number with `digits` significant digits, thousands separated and no exponent between 1e-4 and 1e15.

    Raises
    ------
    ValueError
        If `value` is infinite or not a number.
    """
    if not math.isfinite(value):
        raise ValueError(f"not a finite number: {value}")
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def count(value: int) -> str:
    """Return a whole number with thousands separated."""
    return f"{int(value):,}"


def counted(number: int | str, noun: str) -> str:
    """Return a number, or one as it reads, with its noun, whose plural ends in s.

    >>> counted(1, "launch"), counted(1200, "kernel"), counted("1", "effective sample"), counted(2, "launch")
    ('1 launch', '1,200 kernels', '1 effective sample', '2 launches')
    >>> counted(2, "copy"), counted(3, "delay")
    ('2 copies', '3 delays')
    """
    words = number if isinstance(number, str) else count(number)
    if words == "1":
        return f"{words} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{words} {noun[:-1]}ies"
    return f"{words} {noun}{'es' if noun.endswith('ch') else 's'}"


def count_or_digits(value: float | None) -> str:
    """Return a number from 1,000 on as a whole number, below with three significant digits."""
    if value is None:
        return NOT_MEASURED
    return count(round(value)) if abs(value) >= 1000 else significant(value)


def _unit_of_rounded(ns: float) -> tuple[str, float]:
    """Return the unit of a time that is written with three digits: 999.96 µs is 1 ms."""
    return time_unit(float(f"{ns:.2e}"))


def time(ns: float) -> str:
    """Return a time, ns, with its own SI unit and without trailing zeros: `1.35 ms`, `2 s`."""
    name, size = _unit_of_rounded(ns)
    return f"{significant(ns / size)} {name}"


def saving(ns: float) -> str:
    """Return a saved time, ns; `nothing` where that is 0, as for a change of what limits nothing."""
    return time(ns) if ns else "nothing"


def time_three_digits(ns: int) -> str:
    """Return a time, ns, with its own SI unit and three digits, zeros included and thousands together: `2.00 s`."""
    name, size = _unit_of_rounded(ns)
    value = ns / size
    return f"{value:.{max(0, 3 - len(str(int(abs(value)))))}f} {name}"


def difference(ns: float) -> str:
    """Return a difference of times, ns, in words, with its sign.

    >>> difference(-1500), difference(0)
    ('−1.5 µs', '0 ns')
    """
    return f"{'−' if ns < 0 else '+'}{time(abs(ns))}" if ns else "0 ns"


def quantity(value: float | None, unit: str = "") -> str:
    """Return a value with its unit and a decimal prefix; an en dash where it was not measured."""
    if value is None:
        return NOT_MEASURED
    if unit in NANOSECONDS:
        return time(value * NANOSECONDS[unit])
    if unit == "KiB":
        return quantity(value * 2**10, "bytes")
    unit = "" if unit == "ratio" else unit
    prefix, size = unit_for(value, SI_PREFIXES)
    if unit in ("bytes", "B", "Hz") and prefix:
        return f"{significant(value / size)} {prefix}{'B' if unit == 'bytes' else unit}"
    if unit and prefix in ("G", "M"):
        return f"{significant(value / size)} {prefix} {unit}"
    return f"{significant(value)} {unit}".strip()


def setting_value(value: float, unit: str) -> str:
    """Return a value that a cause has or is set to, three digits or all before the point: bytes with binary prefixes,
    ratios in percent.
    """
    units = {"bytes": BINARY_UNITS, "Hz": FREQUENCY_UNITS, "ns": TIME_UNITS, "W": (("W", 1.0),)}.get(unit)
    if units:
        shown = value if unit == "bytes" else float(f"{value:.3g}")  # 999.7 µs is 1 ms
        name, size = unit_for(shown, units)
        return f"{significant(value / size)} {name}"
    if unit == "ratio":
        return f"{significant(100 * value)} %"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:,.3g}"


def percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return a percentage (0 to 100) with its interval where it has one: `34 % [27, 41]`."""
    if value is None:
        return NOT_MEASURED
    interval = "" if low is None or high is None else f" [{_percent_digits(low)}, {_percent_digits(high)}]"
    return f"{_percent_digits(value)} %{interval}"


def _percent_digits(value: float) -> str:
    """Return a percentage's digits: whole from 1 on, one decimal below, and nothing that is there rounds to 0."""
    if value == 0:
        return "0"
    if abs(value) < 0.05:
        return "<0.1" if value > 0 else ">-0.1"
    tenths = round(value, 1)
    return f"{tenths:.1f}" if abs(tenths) < 1 else f"{value:,.0f}"


def whole_percent(value: float, signed: bool = False) -> str:
    """Return a percentage's digits as a whole number, never -0; `signed`: with a plus where it is above 0."""
    whole = round(value)
    return f"{whole:+d}" if signed and whole else f"{whole:d}"


def share(value: float | None) -> str:
    """Return a share (0 to 1) in percent with one decimal, `< 0.1 %` for what would round to nothing."""
    if value is None:
        return NOT_MEASURED
    return f"{100 * value:.1f} %" if value == 0 or abs(value) >= 0.0005 else "< 0.1 %"


def ratio(value: float | None, decimals_from_one: int = 2) -> str:
    """Return a number between 0 and 1 with two decimals, `0.38`; from 1 on with `decimals_from_one`."""
    if value is None:
        return NOT_MEASURED
    return f"{value:.2f}" if value < 1 else f"{value:.{decimals_from_one}f}"


def spread(cv: float | None) -> str:
    """Return a robust coefficient of variation: two decimals, below 0.1 two significant digits.

    >>> spread(0.385), spread(0.0026234)
    ('0.39', '0.0026')
    """
    return ratio(cv) if cv is None or cv >= 0.1 else significant(cv, 2)


def ratio_three_decimals(value: float) -> str:
    """Return a ratio that is compared with another: three decimals, below 0.1 three significant digits."""
    return f"{value:.3f}" if value >= 0.1 else significant(value)


def signed(*values: float | None) -> list[str]:
    """Return changes that belong together with their signs and as many decimals as the largest of them needs.

    None is left out; what rounds to 0 has no sign.
    """
    present = [value for value in values if value is not None]
    largest = max(map(abs, present), default=0.0) or 1.0
    decimals = max(0, (1 if largest < 10 else 2) - math.floor(math.log10(largest)))
    texts = [f"{abs(value):,.{decimals}f}" for value in present]
    signs = [
        "" if not float(text.replace(",", "")) else "+" if value > 0 else "−"
        for value, text in zip(present, texts, strict=True)
    ]
    return [f"{sign}{text}" for sign, text in zip(signs, texts, strict=True)]


def changed_by(value: float, low: float | None = None, high: float | None = None, unit: str = "%") -> str:
    """Return a change with its interval where it has one.

    >>> changed_by(4, -3.84, 4.2), changed_by(-140.2)
    ('+4.0 % [−3.8, +4.2]', '−140 %')
    """
    words, *ends = signed(value, *(() if low is None or high is None else (low, high)))
    return f"{words} {unit} [{ends[0]}, {ends[1]}]" if ends else f"{words} {unit}"


def q_value(value: float) -> str:
    """Return a q-value; what is below a ten-thousandth is no more than that."""
    return "q < 0.0001" if value < 1e-4 else f"q = {value:.2g}"


def runs_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return whole numbers, ascending, in runs of neighbours."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return runs


def integer_ranges(numbers: Iterable[int], to: str = "–") -> str:
    """Return whole numbers, ascending, with neighbours drawn together: `0–3, 7`."""
    runs = runs_of(numbers)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}{to}{run[-1]}" for run in runs) or NOT_MEASURED


def first_of(items: Iterable[object], most: int = 8) -> str:
    """Return items in one line, in their order: the first `most`, and how many more there are; '' without any."""
    texts = list(map(str, items))
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def ranks_named(ranks: Sequence[int], most: int = 8) -> str:
    """Return ranks in words, the first of many: `rank 3`, `ranks 0, 1 and 2 more`."""
    return f"rank{'s' if len(ranks) > 1 else ''} {first_of(ranks, most)}"


def elided(text: str, limit: int, tail: int | None = None, mark: str = "…") -> str:
    """Return `text` with its middle replaced by `mark` where it is longer than `limit` characters.

    `tail` is how many characters of its end stay; two fifths of the room by default.
    """
    if len(text) <= limit:
        return text
    room = limit - len(mark)
    tail = room * 2 // 5 if tail is None else tail
    return f"{text[: room - tail]}{mark}{text[len(text) - tail :]}"


def name_in_quotes(name: str) -> str:
    """Return a kernel's name in one line, cut and quoted, what cannot be shown escaped as Python does."""
    return repr(elided(" ".join(name.split()), QUOTED_LENGTH, tail=17, mark="..."))


def name_in_sentence(name: str) -> str:
    """Return a kernel's name in one line, cut in its middle to a length that fits a sentence."""
    return elided(" ".join(name.split()), NAME_LENGTH, tail=20)


def value_of(target: str) -> str:
    """Return what is measured of a target: the value whose variance its causes share.

    >>> value_of("kernel_variability"), value_of("dram_bytes")
    ('the durations', 'dram_bytes')
    """
    return VALUES.get(target, target)


def variance_of(target: str, of_kernels: bool = False) -> str:
    """Return which variance the shares of a target's causes are of: of one kernel, or `of_kernels`, in which each
    configuration counts in its own standard deviations and each kernel as much as any other.

    >>> variance_of("kernel_variability"), variance_of("kernel_variability", of_kernels=True)
    ('the variance of the durations', "the kernels' standardised variance of the durations, each kernel alike")
    """
    if of_kernels:
        return f"the kernels' standardised variance of {value_of(target)}, each kernel alike"
    return f"the variance of {value_of(target)}"
