"""Compressed exports give the same tables as the files in them; cut ones what comes before the cut; bombs nothing."""

import bz2
import functools
import gzip
import hashlib
import io
import lzma
import random
import zlib

import pyarrow as pa
import pytest
from layouts import FAMILY, LAYOUTS
from reading import Read

from causeway.readers import unpacking
from causeway.readers.common.files import first_bytes
from causeway.readers.common.packed import DamagedError, packing, unpacked
from causeway.readers.containers.chrome_json import WINDOW_BYTES, TraceText
from causeway.readers.detect import detect

PACK = {
    ".gz": lambda content: gzip.compress(content, mtime=0),
    ".xz": functools.partial(lzma.compress, preset=0),  # packs as well, in a tenth of the time
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}
FORMATS = ("nsys", "rocpd", "kineto", "rocprof", "ncu", "table", "cupti")


def made(word, folder, rows=50):
    """Return a made-up export of a format that is one file."""
    for number, name in enumerate(LAYOUTS):
        if FAMILY[name] == word:
            folder.joinpath(str(number)).mkdir()
            path = LAYOUTS[name](folder / str(number), "kernel", rows)
            if path.is_file() and path.suffix != ".gz":
                return path
    raise LookupError(word)


def tables(read):
    return {name: getattr(read, name).to_pydict() for name in read.names}


@pytest.fixture(scope="module", params=FORMATS)
def made_up(request, tmp_path_factory):
    """Return a format, the path of a made-up export of it, and its tables."""
    folder = tmp_path_factory.mktemp("plain")
    path = made(request.param, folder)
    return request.param, path, tables(Read(path, folder / "read"))


@pytest.mark.parametrize("ending", PACK)
def test_a_compressed_export_gives_the_tables_of_the_file_in_it(made_up, ending, tmp_path):
    word, plain, expected = made_up
    path = tmp_path / (plain.name + ending)
    path.write_bytes(PACK[ending](plain.read_bytes()))
    assert detect(path) == detect(plain) == word
    read = Read(path, tmp_path / "packed")
    assert read.status == "read"
    assert tables(read) == expected
    assert read.capabilities["bytes"] == path.stat().st_size
    assert read.capabilities["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not list(tmp_path.glob("*.unpacked"))


@pytest.mark.parametrize("ending", PACK)
def test_what_comes_before_a_cut_is_read_and_the_cut_is_said(ending, tmp_path):
    chance = random.Random(1)
    lines = [f"k,{chance.random()}" for _ in range(64_000)]  # more than a block of bzip2, packed badly
    content = PACK[ending]("\n".join(["kernel,y", *lines]).encode())
    path = tmp_path / f"t.csv{ending}"
    path.write_bytes(content[: len(content) * 3 // 4])
    read = Read(path, tmp_path / "t")
    assert read.status == "partial"
    assert read.count("truncated")
    assert 28_000 < read.counters.num_rows < 64_000


@pytest.mark.parametrize("ending", PACK)
def test_members_one_after_the_other_are_one_file(ending, tmp_path):
    path = tmp_path / f"two{ending}"
    path.write_bytes(PACK[ending](b"first ") + PACK[ending](b"second"))
    with open(path, "rb") as file:
        assert b"".join(unpacked(file, packing(path))) == b"first second"
    assert first_bytes(path, 8) == b"first se"


@pytest.mark.parametrize("ending", PACK)
def test_a_bomb_is_refused_before_it_fills_the_disk(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "ALWAYS_BYTES", 1 << 22)
    monkeypatch.setattr(unpacking, "MOST_TIMES", 2)
    path = tmp_path / f"bomb.rpd{ending}"
    path.write_bytes(PACK[ending](b"SQLite format 3\x00" + bytes(1 << 24)))
    read = Read(path, tmp_path / "t", form="rocpd")
    assert read.status == "refused"
    assert "unpacks to more than 4,194,304 bytes" in read.error["found"]
    assert not list(tmp_path.glob("*.unpacked"))


def test_blocks_are_small_whatever_the_ratio(tmp_path):
    for ending, pack in PACK.items():
        path = tmp_path / f"zeros{ending}"
        path.write_bytes(pack(bytes(1 << 24)))
        with open(path, "rb") as file:
            sizes = [len(block) for block in unpacked(file, packing(path), 1 << 16)]
        assert sum(sizes) == 1 << 24
        assert max(sizes) <= 1 << 16


def test_a_json_bomb_is_read_in_windows_whatever_its_ratio(tmp_path):
    """One block of packed bytes inflates to 1,000 times as much: each step gives one window of it at most."""
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b" " * (16 * WINDOW_BYTES), mtime=0))
    text = TraceText(path, set())
    sizes = [len(block) for block in text._blocks]
    text.close()
    assert sum(sizes) == 16 * WINDOW_BYTES
    assert max(sizes) <= WINDOW_BYTES


def test_an_xz_file_that_asks_for_gigabytes_gives_nothing():
    """The dictionary's size stands in the block's header, which the encoder wrote: 3 GiB of it for a few lines."""
    content = b"a,b\n" + b"1,2\n" * 1000
    packed = with_dictionary(lzma.compress(content), 39)
    assert lzma.decompress(packed) == content
    with pytest.raises(DamagedError, match="asks for too much memory"):
        list(unpacked(io.BytesIO(packed), "xz"))


@pytest.mark.parametrize(("code", "mib", "given"), [(28, 64, True), (29, 96, True), (30, 128, False), (31, 192, False)])
def test_a_dictionary_of_xz_takes_less_than_128_mib(code, mib, given):
    """64 MiB are those of `xz -9`, the largest of its presets."""
    assert (2 | code & 1) << code // 2 + 11 == mib << 20
    content = b"a,b\n" + b"1,2\n" * 1000
    packed = io.BytesIO(with_dictionary(lzma.compress(content), code))
    if given:
        assert b"".join(unpacked(packed, "xz")) == content
    else:
        with pytest.raises(DamagedError, match="asks for too much memory"):
            list(unpacked(packed, "xz"))


def with_dictionary(packed, code):
    """Return an xz file whose header asks for a dictionary of another size, coded as the .xz file format 1.2.1 does
    (section 5.3.1).
    """
    packed = bytearray(packed)
    header = slice(12, 12 + 4 * (packed[12] + 1))
    block = packed[header]
    block[4] = code
    block[-4:] = zlib.crc32(bytes(block[:-4])).to_bytes(4, "little")
    packed[header] = block
    return bytes(packed)
