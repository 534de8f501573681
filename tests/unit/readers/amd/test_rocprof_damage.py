"""Mutated exports of AMD's tools: read as far as possible or refused with a sentence, never a crash, nothing left
behind.
"""

import random

import pytest
from layouts.rocpd_samples import write_rocpd
from layouts.rocprofv3_samples import make_run, write_csv, write_json
from reading import Read

MUTANTS = pytest.mark.parametrize("mutants", [15, pytest.param(40, marks=pytest.mark.slow)])
"""Per sample; a longer run is made by raising it."""

JUNK = [
    b"\x00",
    b'"',
    b'"""',
    b"\n",
    b",",
    b"-1",
    b"9" * 25,
    b"1e308",
    b"nan",
    b"{",
    b"}",
    b"[",
    b"]",
    b"null",
    b"\xff\xfe",
    b"true",
]
JUNK += [b"'; DROP TABLE x; --", b"<script>", b"\r", b"1.5", b'""', b"\\u0000"]
V3 = ("kernel_trace", "memory_copy_trace", "counter_collection", "hip_api_trace", "marker_api_trace", "agent_info")


def mutated(content, chosen):
    """Return a copy with some bytes flipped, cut, doubled, removed or replaced by junk."""
    content = bytearray(content)
    for _ in range(chosen.choice((1, 1, 2, 3, 8))):
        if not content:
            break
        at = chosen.randrange(len(content))
        end = min(len(content), at + chosen.choice((1, 2, 5, 20, 200)))
        way = chosen.randrange(7)
        if way == 0:
            content[at] = chosen.randrange(256)
        elif way == 1:
            del content[at:end]
        elif way == 2:
            content[at:at] = chosen.choice(JUNK)
        elif way == 3:
            content = content[:at]
        elif way == 4:
            content[at:at] = content[at:end]
        elif way == 5:
            content[at:end] = chosen.choice(JUNK)
        else:
            content[at:end] = bytes(chosen.randrange(256) for _ in range(end - at))
    return bytes(content)


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """Return content and family of one small export of each kind."""
    folder = tmp_path_factory.mktemp("samples")
    run = make_run(n=6)
    write_csv(run, folder / "csv")
    found = {name: ((folder / "csv" / f"4242_{name}.csv").read_bytes(), "rocprofv3", f"4242_{name}.csv") for name in V3}
    found["json"] = (write_json([run], folder / "r.json").read_bytes(), "rocprofv3", "r.json")
    found["rocpd3"] = (write_rocpd(run, folder / "3.db").read_bytes(), "rocpd", "r.db")
    found["rocpd4"] = (write_rocpd(run, folder / "4.db", "", version="4.1.0").read_bytes(), "rocpd", "r.db")
    return found


def real_sample(data, name):
    files = {
        "v1": ("rocprof_v1/gunrock/results.csv", "rocprof", "results.csv"),
        "v1_database": ("rocprof_v1/gunrock/results.db", "rocprof", "results.db"),
        "merged": ("rocprof_compute/ipblocks_SQ_SPI_TA_TCC_CPF/MI200/pmc_perf.csv", "rocprof", "pmc_perf.csv"),
        "rounded": ("rocprof_compute/vcopy/MI300X_A1/SQ_LEVEL_WAVES.csv", "rocprof", "SQ_LEVEL_WAVES.csv"),
        "rpd": ("rpd/rocm-profile-data/matmul_result.rpd", "rocpd", "m.rpd"),
    }
    path, form, label = files[name]
    return (data / path).read_bytes(), form, label


def attack(sample, tmp_path, seed, mutants):
    content, form, label = sample
    chosen = random.Random(seed)
    statuses = set()
    for _ in range(mutants):
        path = tmp_path / label
        path.write_bytes(mutated(content, chosen))
        export = Read(path, tmp_path / "t", form=chosen.choice((form, "auto")))
        statuses.add(export.status)
        assert "foresee" not in str(export.error), export.error
        assert not [one.name for one in export.folder.iterdir() if one.suffix not in (".parquet", ".json")]
        assert (export.status == "refused") == (export.names == set())
    assert "refused" in statuses


@MUTANTS
@pytest.mark.parametrize("name", [*V3, "json", "rocpd3", "rocpd4"])
def test_mutants_of_made_up_exports(name, samples, tmp_path, mutants):
    attack(samples[name], tmp_path, f"made-up {name}", mutants)


@MUTANTS
@pytest.mark.parametrize("name", ["v1", "v1_database", "merged", "rounded", "rpd"])
def test_mutants_of_real_exports(name, data, tmp_path, mutants):
    attack(real_sample(data, name), tmp_path, f"real {name}", mutants)
