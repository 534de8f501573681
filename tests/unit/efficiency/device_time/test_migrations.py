"""Migrations of managed memory in the efficiency of a dataset: by kernel and by what the host touches."""

import numpy as np
import pytest
from efficiency_samples import export
from tests.unit.efficiency.test_measure import measured

from causeway.efficiency.device_time.migrations import SUMS, migrations_of
from causeway.findings.device_time.efficiency import efficiency_findings, little_memory_stall

PAGE = {"bytes": 4096, "stream": 0}


def test_a_page_belongs_to_the_kernel_that_runs_or_to_the_host_after_it(tmp_path):
    kernels = [(100, 200, {}), (300, 400, {"kernel": "softmax"}), (350, 500, {})]
    pages = [
        (10, 20, PAGE | {"copy_kind": 12, "migration_cause": 2}),  # the host, before the first kernel
        (110, 130, PAGE | {"copy_kind": 11, "migration_cause": 2}),
        (190, 210, PAGE | {"copy_kind": 12, "migration_cause": 4}),  # evicted; 10 ns of it during the kernel
        (220, 225, PAGE | {"copy_kind": 11, "migration_cause": 1}),  # asked for
        (360, 380, PAGE | {"copy_kind": 11, "migration_cause": 2}),  # during both: of the one that ends last
        (600, 650, PAGE | {"copy_kind": 12, "migration_cause": 2}),
    ]
    document, rows = measured(tmp_path, [export(tmp_path / "0", kernels=kernels, copies=pages)])
    found = document["migrations"]
    counts = ("migrations", "prefetched", "bytes", "duration_ns")
    assert [
        (one["name"], one["launches"], one["kernel_ns"], one["under_ns"], *(one[n] for n in counts))
        for one in found["kernels"]
    ] == [
        ("gemm", 2, 250, 20 + 10 + 20, 3, 0, 3 * 4096, 60),
        ("softmax", 1, 100, 20, 0, 0, 0, 0),
    ]
    assert [(one["after"], *(one[name] for name in counts)) for one in found["host"]] == [
        ("gemm", 2, 1, 2 * 4096, 55),
        (None, 1, 0, 4096, 10),
    ]
    device = document["breakdown"]["0/0"]
    assert device["under_migrations_ns"] == 20 + 10 + 20, "of the union of the kernels"
    assert device["exposed_migrations_ns"] == device["exposed_memory_ns"] == 10 + 10 + 5 + 50
    assert device["idle_ns"] == 650 - 10 - (100 + 200) - 75
    assert rows[0]["memory_ns"] == 10 + 20 + 20 + 5 + 20 + 50


def test_a_copy_beside_a_migration_is_no_exposed_migration(tmp_path):
    copies = [(10, 30, {"copy_kind": 1}), (20, 50, PAGE | {"copy_kind": 12})]
    document, _ = measured(tmp_path, [export(tmp_path / "0", kernels=[(100, 200, {})], copies=copies)])
    device = document["breakdown"]["0/0"]
    assert (device["exposed_memory_ns"], device["exposed_migrations_ns"]) == (40, 20)


def test_migrations_are_no_stream_and_one_is_an_event_like_others(tmp_path):
    pages = [(at, at + 5, PAGE | {"copy_kind": 12}) for at in (200, 300)]
    document, _ = measured(tmp_path, [export(tmp_path / "0", kernels=[(100, 150, {})], copies=pages)])
    assert document["device"]["parallel_efficiency"] == pytest.approx(50 / 205)
    assert not [note for note in document["notes"] if "one event" in note]


@pytest.mark.parametrize("seed", range(8))
def test_owners_and_times_agree_with_a_search_nanosecond_by_nanosecond(seed, tmp_path):
    random = np.random.default_rng(seed)
    names = ("gemm", "softmax")
    kernels = sorted(
        (int(s), int(s + d), {"kernel": names[k]})
        for s, d, k in zip(
            random.integers(0, 900, 12), random.integers(1, 80, 12), random.integers(0, 2, 12), strict=True
        )
    )
    pages = sorted(
        (int(s), int(s + d)) for s, d in zip(random.integers(0, 950, 15), random.integers(1, 30, 15), strict=True)
    )
    launched = [(start, end, more["kernel"]) for start, end, more in kernels]
    folder = export(tmp_path / "0", kernels=kernels, copies=[(s, e, PAGE | {"copy_kind": 12}) for s, e in pages])
    moving = np.zeros(1100, bool)
    for start, end in pages:
        moving[start:end] = True
    found = [
        {"runs": runs, "name": name, **dict(zip(SUMS, sums.tolist(), strict=True))}
        for (runs, _), (name, sums) in migrations_of(folder).items()
    ]
    for name in names:
        mine = [(start, end) for start, end, of in launched if of == name]
        (one,) = [row for row in found if row["runs"] and row["name"] == name]
        assert (one["launches"], one["kernel_ns"]) == (len(mine), sum(e - s for s, e in mine))
        assert one["under_ns"] == sum(int(moving[s:e].sum()) for s, e in mine)
    in_kernels = sum(any(s <= start < e for s, e, _ in launched) for start, _ in pages)
    assert sum(row["migrations"] for row in found if row["runs"]) == in_kernels
    assert sum(row["migrations"] for row in found if not row["runs"]) == len(pages) - in_kernels


def made(tmp_path, pages):
    document, _ = measured(tmp_path, [export(tmp_path / "0", kernels=[(1000, 2000, {})], copies=pages)])
    return document


def test_the_finding_says_how_much_of_a_kernel_lies_under_migrations(tmp_path):
    pages = [(1100, 1350, PAGE | {"copy_kind": 11, "migration_cause": 2}), (2100, 2150, PAGE | {"copy_kind": 12})]
    (finding,) = [one for one in efficiency_findings(made(tmp_path, pages)) if one.key == "migrations"]
    assert finding.headline == "gemm: pages of managed memory move during 25 % of its time (250 ns)."
    assert "25 % of the kernels' time (1.00 µs), most in gemm: 1 migration of 4.1 kB" in finding.sentence
    assert "cudaMemPrefetchAsync" in finding.suggestion


def test_what_the_program_asked_for_is_no_finding_and_bounds_no_memory_stall(tmp_path):
    pages = [
        (1100, 1350, PAGE | {"copy_kind": 11, "migration_cause": 1}),
        (500, 900, PAGE | {"copy_kind": 11, "migration_cause": 1}),
    ]
    document = made(tmp_path, pages)
    assert not [one for one in efficiency_findings(document) if one.key in ("migrations", "exposed_copies")]
    assert little_memory_stall(document).effect.value == 0, "no copy ran alone"
