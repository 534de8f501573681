"""Text of telemetry as times and numbers: exact nanoseconds of UTC, and values with what tools write for none."""

import re
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd

from causeway.core.errors import CausewayError

BILLION = 1_000_000_000
UNKNOWN_TIME = np.iinfo(np.int64).min
CLOCK_TIME = (
    r"^\s*(\d{4})[-/]?(\d{2})[-/]?(\d{2})[T\s]+(\d{2}):(\d{2}):(\d{2})(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d{2}:?\d{2})?\s*$"
)
"""Dates of nvidia-smi (2024/05/01 12:00:00.123), of its `dmon -o DT` (20240501 12:00:00) and of ISO 8601."""
UNIX_TIME = r"^\s*(\d{1,19})(?:\.(\d{1,9})\d*)?\s*$"
LATEST = 2**63 - 2 * BILLION
UNIX_UNITS = ((10**11, BILLION), (10**14, 10**6), (10**17, 10**3), (2**63 - 1, 1))
"""The number of digits gives the unit of UNIX times: below each limit, nanoseconds per unit. Seconds reach it in the
year 5138, milliseconds begin in 1973.
"""
NUMBER = r"^[(\s]*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?:[A-Za-z%°/]+)?[)\s]*$"
"""A number with or without its unit: `62.5`, `62.5 W`, `98 %`, `(500Mhz)`."""
ABSENT = frozenset(
    "|-|n/a|na|nan|none|null|unknown|error|not supported|not found|unknown error|insufficient permissions"
    "|gpu requires reset|deprecated|function not found|n/s".split("|")
)
"""What tools write where they have no value, without the brackets that nvidia-smi puts around it."""
BLANK_FROM = {2147483632.0: 2147483647.0, 140737488355328.0: 140737488355343.0, 9.223372036854775e18: 9.3e18}
"""DCGM's blank values of 32 bits, of doubles and of 64 bits (`DCGM_INT32_BLANK`, `DCGM_FP64_BLANK`,
`DCGM_INT64_BLANK` of dcgm_structs.h): from each, with its variants for not found and not supported.
"""
FLAGS = {
    **dict.fromkeys(("active", "1", "true", "yes", "throttled"), 1.0),
    **dict.fromkeys(("not active", "0", "false", "no", "unthrottled"), 0.0),
}


def zone_of(name: str) -> tzinfo:
    """Return a time zone by its IANA name or its offset `+hh:mm`; UTC for an empty name.

    Raises
    ------
    CausewayError
        For a name that is neither.
    """
    offset = re.fullmatch(r"([+-])(\d{2}):?(\d{2})", name)
    if offset:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        if span < timedelta(hours=24):
            return timezone(-span if offset[1] == "-" else span)
    elif not name or name.upper() in ("UTC", "Z"):
        return UTC
    else:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise CausewayError(
        f"time zone {name!r} is not known; write an IANA name such as Europe/Berlin, or an offset such as +02:00"
    )


def times_of(texts: pd.Series, zone: tzinfo) -> np.ndarray:
    """Return times as nanoseconds since 1970 in UTC.

    Parameters
    ----------
    texts : Series of str, shape (n,)
        Dates with or without an offset, or UNIX times in s, ms, us or ns.
    zone : tzinfo
        Of dates without an offset. A local time that a change of the clocks skips or repeats is unknown.

    Returns
    -------
    ndarray of int64, shape (n,), ns
        `UNKNOWN_TIME` where there is none.
    """
    texts = texts.reset_index(drop=True)
    times = np.full(len(texts), UNKNOWN_TIME, np.int64)
    unix = texts.str.extract(UNIX_TIME)
    dated = unix[0].str.fullmatch(r"20\d{6}").eq(True) & unix[1].isna()  # a date alone, no count of seconds
    fits = unix[0].str.zfill(19).le(str(2**63 - 1))
    rows = np.flatnonzero((unix[0].notna() & ~dated & fits).to_numpy())
    if rows.size:
        times[rows] = _unix_times(unix.iloc[rows])
    parts = texts.str.extract(CLOCK_TIME)
    rows = np.flatnonzero(parts[0].notna().to_numpy())
    if rows.size:
        times[rows] = _clock_times(parts.iloc[rows].reset_index(drop=True), zone)
    return times


def _unix_times(parts: pd.DataFrame) -> np.ndarray:
    """Return UTC in ns of UNIX times that are taken apart into the groups of `UNIX_TIME`."""
    whole = parts[0].astype(np.int64).to_numpy()
    scale = np.select([whole <= limit for limit, _ in UNIX_UNITS], [scale for _, scale in UNIX_UNITS])
    fraction = parts[1].fillna("").str.ljust(9, "0").astype(np.int64).to_numpy() * scale // BILLION
    fits = whole <= LATEST // scale
    return np.where(fits, np.where(fits, whole, 0) * scale + fraction, UNKNOWN_TIME)


def _clock_times(parts: pd.DataFrame, zone: tzinfo) -> np.ndarray:
    """Return UTC in ns of dates that are taken apart into the groups of `CLOCK_TIME`."""
    day = parts[0] + "-" + parts[1] + "-" + parts[2] + " " + parts[3] + ":" + parts[4] + ":" + parts[5]
    local = pd.to_datetime(day, format="%Y-%m-%d %H:%M:%S", errors="coerce")
    fraction = parts[6].fillna("").str.ljust(9, "0").astype(np.int64).to_numpy()
    own = parts[7]
    stated = own.notna().to_numpy()
    seconds = np.full(len(parts), UNKNOWN_TIME, np.int64)
    index = pd.DatetimeIndex(local)
    if (~stated).any():
        zoned = index[~stated].tz_localize(zone, ambiguous="NaT", nonexistent="NaT").tz_convert("UTC")
        seconds[~stated] = _seconds(zoned.tz_localize(None))
    if stated.any():
        digits = own[stated].str.replace(":", "").replace("Z", "+0000")
        offset = digits.str[1:3].astype(int) * 3600 + digits.str[3:5].astype(int) * 60
        sign = np.where(digits.str[0] == "-", -1, 1)
        whole = _seconds(index[stated])
        seconds[stated] = np.where(whole == UNKNOWN_TIME, whole, whole - sign * offset.to_numpy())
    return np.where(seconds == UNKNOWN_TIME, UNKNOWN_TIME, seconds * BILLION + fraction)


def _seconds(index: pd.DatetimeIndex) -> np.ndarray:
    """Return whole seconds since 1970, `UNKNOWN_TIME` for no time."""
    return np.where(index.isna(), UNKNOWN_TIME, index.to_numpy().astype("datetime64[s]").astype(np.int64))


def numbers_of(texts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return numbers, and which texts are none without saying so.

    Parameters
    ----------
    texts : Series of str, shape (n,)

    Returns
    -------
    values : ndarray of float, shape (n,)
        NaN where there is none; DCGM's blank values are none.
    bad : ndarray of bool, shape (n,)
        Where the text is neither a finite number nor one of `ABSENT`.
    """
    plain = _plain(texts)
    values = pd.to_numeric(plain.str.extract(NUMBER)[0], errors="coerce").to_numpy(np.float64, copy=True)
    bad = ~np.isfinite(values) & ~plain.isin(ABSENT).to_numpy()
    values[~np.isfinite(values)] = np.nan
    for low, high in BLANK_FROM.items():
        values[(values >= low) & (values <= high)] = np.nan
    return values, bad


def flags_of(texts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return 1 for what is active and 0 for what is not; parameters and results as of `numbers_of`.

    Parameters
    ----------
    texts : Series of str, shape (n,)

    Returns
    -------
    values, bad : ndarray of float and of bool, shape (n,)
    """
    plain = _plain(texts)
    values = plain.map(FLAGS).to_numpy(np.float64)
    return values, np.isnan(values) & ~plain.isin(ABSENT).to_numpy()


def states_of(texts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of performance states, 0 for P0; otherwise as `numbers_of`.

    Parameters
    ----------
    texts : Series of str, shape (n,)

    Returns
    -------
    values, bad : ndarray of float and of bool, shape (n,)
    """
    plain = _plain(texts)
    values = pd.to_numeric(plain.str.extract(r"^p?(\d{1,3})$")[0], errors="coerce").to_numpy(np.float64, copy=True)
    return values, np.isnan(values) & ~plain.isin(ABSENT).to_numpy()


def masks_of(texts: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return bit masks from decimal numbers or those with 0x.

    Parameters
    ----------
    texts : Series of str, shape (n,)

    Returns
    -------
    values, bad : ndarray of int64 and of bool, shape (n,)
        -1 where there is no mask.
    """
    plain = _plain(texts)

    def mask_of(text: str) -> int:
        try:
            value = int(text, 16) if text.startswith("0x") else int(float(text))
        except (ValueError, OverflowError):
            return -1
        return value if 0 <= value < 1 << 48 else -1  # beyond: DCGM's blank values

    masks = {text: mask_of(text) for text in plain.unique()}
    values = plain.map(masks).to_numpy(np.int64)
    blank = plain.str.fullmatch(r"\d{10,19}").to_numpy(bool)
    return values, (values < 0) & ~plain.isin(ABSENT).to_numpy() & ~blank


def _plain(texts: pd.Series) -> pd.Series:
    """Return texts in small letters without the blanks and brackets around them."""
    return texts.reset_index(drop=True).str.strip().str.lower().str.replace(r"^\[(.*)\]$", r"\1", regex=True)
