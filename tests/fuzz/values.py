"""Values that readers may not expect: numbers, texts and bytes."""

import random

NUMBERS = (
    0,
    -1,
    1,
    255,
    256,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    -(2**63) - 1,
    10**30,
)
TEXTS = (
    "",
    "0",
    "-1",
    "NaN",
    "inf",
    "-Infinity",
    "1e400",
    "1e-400",
    "9" * 25,
    "0x7f",
    "1,234.5",
    "1.234,5",
    "½",
    "١٢",
    "\u202e",
    "a\x00b",
    "null",
    "Agent 1",
    "n/a",
    "(1, 2, 3)",
    "<b>&amp;",
    "'; DROP TABLE x; --",
    "\U0001f525",
    "\ufeff",
    "k" * 5000,
    '"',
    "\r\n",
    ",",
    "_ZN1a1bEv",
)
BLOCKS = (
    b"\x00",
    b"\xff" * 8,
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\x7f",
    b"\x80" * 4,
    b'"',
    b"\\",
    b"{",
    b"[",
    b"]}",
    b"\n",
    b"\r",
    b"\xc3(",
    b"\xef\xbb\xbf",
    b"\x1f\x8b\x08",
    b"PAR1",
    b"SQLite format 3\x00",
    b"9" * 30,
    b"-",
    b"1e999",
    b"[" * 3000,
)


def any_value(chance: random.Random):
    return chance.choice(
        (*NUMBERS, *TEXTS, None, True, 0.5, -1.5e300, [], {}, [1, 2, 3], {"value": 1}, [[[]]], {"x": 1, "y": 2, "z": 3})
    )
