"""Damage by design: changed bytes, and changed contents inside an intact container (`text_mutations`,
`table_mutations`, gzip).

Every mutation takes its chance from the generator that it is given, so that an input is made again from its layout and
number.
"""

import csv
import gzip
import random
import sqlite3
from pathlib import Path

import pyarrow as pa

from fuzz.table_mutations import mutate_arrow, mutate_database, mutate_parquet
from fuzz.text_mutations import mutate_csv, mutate_json, mutate_json_lines
from fuzz.values import BLOCKS, NUMBERS, TEXTS


def mutate(path: Path, chance: random.Random) -> str:
    """Change an export in place (a file, or one to three files of a folder); return what was done."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        done = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            if not files:
                break
            file = chance.choice(files)
            done.append(
                f"{file.name}: {_file(file, chance)}" if chance.random() < 0.9 else _neighbours(file, files, chance)
            )
            files = [file for file in files if file.is_file()]
        return "; ".join(done)
    return _file(path, chance)


def _neighbours(file: Path, files: list[Path], chance: random.Random) -> str:
    """Remove a file of a folder, rename it, copy it, or put another's content in its place."""
    other = chance.choice(files)
    what = chance.choice(("remove", "rename", "copy", "swap"))
    if what == "remove" and len(files) > 1:
        file.unlink()
    elif what == "rename":
        file.rename(file.with_name(f"x_{other.name}"))
    elif what == "copy":
        file.with_name(f"9_{file.name}").write_bytes(file.read_bytes())
    else:
        file.write_bytes(other.read_bytes())
    return f"{file.name}: {what}"


def _file(path: Path, chance: random.Random) -> str:
    content = path.read_bytes() if path.is_file() else b""
    inside = _inside(path, content)
    if inside and chance.random() < 0.6:
        try:
            return inside(path, content, chance)
        except (
            sqlite3.Error,
            pa.ArrowException,
            OSError,
            ValueError,
            KeyError,
            TypeError,
            OverflowError,
            csv.Error,
        ) as error:
            path.write_bytes(content)
            return f"{inside.__name__} failed ({type(error).__name__}), then {_as_bytes(path, content, chance)}"
    return _as_bytes(path, content, chance)


def _inside(path: Path, content: bytes):
    """Return the mutation that knows a file's container, if one does."""
    if content.startswith(b"SQLite"):
        return mutate_database
    if content.startswith(b"PAR1"):
        return mutate_parquet
    if content.startswith(b"\xff\xff\xff\xff"):
        return mutate_arrow
    if content.startswith(b"\x1f\x8b"):
        return _packed
    if content.lstrip()[:1] in (b"{", b"["):
        return mutate_json_lines if path.suffix == ".jsonl" else mutate_json
    return mutate_csv if content else None


# bytes


def _as_bytes(path: Path, content: bytes, chance: random.Random) -> str:
    changed = bytearray(content or b"x")
    done = []
    for _ in range(chance.choice((1, 1, 2, 4, 16))):
        what = chance.choice(("flip", "overwrite", "insert", "delete", "repeat", "swap", "cut", "digits", "grow"))
        at = chance.randrange(len(changed))
        size = chance.choice((1, 2, 8, 100, 4096))
        if what == "flip":
            changed[at] ^= 1 << chance.randrange(8)
        elif what == "overwrite":
            block = chance.choice(BLOCKS)
            changed[at : at + len(block)] = block
        elif what == "insert":
            changed[at:at] = chance.choice(BLOCKS) * chance.choice((1, 1, 10))
        elif what == "delete":
            del changed[at : at + size]
        elif what == "repeat":
            changed[at:at] = changed[at : at + size] * chance.choice((1, 2, 30))
        elif what == "swap":
            other = chance.randrange(len(changed))
            changed[at : at + size], changed[other : other + size] = (
                changed[other : other + size],
                changed[at : at + size],
            )
        elif what == "cut" and chance.random() < 0.3:
            del changed[at:]
        elif what == "digits":
            _other_digits(changed, at, chance)
        elif what == "grow" and chance.random() < 0.1:
            changed[at:at] = bytes([chance.randrange(256)]) * 200_000
        done.append(what)
        changed = changed or bytearray(b"x")
    path.write_bytes(bytes(changed))
    return " ".join(done)


def _other_digits(changed: bytearray, at: int, chance: random.Random) -> None:
    """Put another number in the place of the next one in the text."""
    begin = next((n for n in range(at, min(at + 400, len(changed))) if changed[n] in b"0123456789"), None)
    if begin is not None:
        end = next((n for n in range(begin, len(changed)) if changed[n] not in b"0123456789."), len(changed))
        changed[begin:end] = str(chance.choice(NUMBERS + TEXTS)).encode("utf-8", "replace")


def _packed(path: Path, content: bytes, chance: random.Random) -> str:
    path.write_bytes(gzip.decompress(content))
    done = _file(path, chance)
    path.write_bytes(gzip.compress(path.read_bytes(), 1, mtime=0))
    return f"packed {done}"
