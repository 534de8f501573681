"""Collectives of random ranks: their matches and sums by size beside a plain program over lists and dictionaries."""

from collections import defaultdict

import numpy as np
import pytest
from efficiency_samples import clocks, collective_rows, event, export, rank_collectives

from causeway.core.tables import read_table
from causeway.efficiency.ranks import collectives
from causeway.efficiency.ranks.collective_sizes import summarise_collectives
from causeway.efficiency.ranks.rank_collectives import collectives_of

NAMES = ("allreduce", "broadcast", "_allgather_base")


def random_ranks(random, numbered):
    """Return rows by rank: of communicator a the same ones everywhere, of b some lacking, of None in another order."""
    found = {}
    for rank in sorted(random.choice(50, 4, replace=False).tolist()):
        rows = [("a", NAMES[at % 3], at) for at in range(30)] + [(None, NAMES[(at + rank) % 3], at) for at in range(6)]
        rows += [("b", NAMES[0], at) for at in range(20) if random.random() < 0.8]
        order = sorted(range(len(rows)), key=lambda at: (rows[at][2], str(rows[at][0])))
        starts = np.cumsum(random.integers(50, 90, len(rows))).tolist()
        found[rank] = []
        for start, at in zip(starts, order, strict=True):
            group, name, number = rows[at]
            end = start + int(random.integers(1, 50))
            found[rank].append((start, end, name, group, number if numbered else None, 1 << (number % 3)))
    return found


def plainly_matched(ranks):
    """Return for each communicator the rows of its ranks side by side, as lists; None where they do not match."""
    groups = defaultdict(dict)
    for rank, rows in ranks.items():
        for row in rows:
            groups[row[3]].setdefault(rank, []).append(row)
    found = {}
    for group, members in groups.items():
        if all(row[4] is not None for rows in members.values() for row in rows):
            known = {rank: {row[4]: row for row in rows} for rank, rows in members.items()}
            common = sorted(set.intersection(*map(set, known.values())))
            found[group] = {rank: [rows[number] for number in common] for rank, rows in known.items()}
        elif len({tuple(row[2] for row in rows) for rows in members.values()}) == 1:
            found[group] = members
        else:
            found[group] = None
    return found


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_matches_are_those_of_a_plain_program(seed, numbered):
    ranks = random_ranks(np.random.default_rng(seed), numbered)
    wanted = plainly_matched(ranks)
    groups, notes = collectives.match([{rank: rank_collectives(rows)} for rank, rows in ranks.items()])
    assert {group.communicator for group in groups} == {name for name, rows in wanted.items() if rows}
    assert len(notes) == sum(rows is None for rows in wanted.values())
    for group in groups:
        rows = wanted[group.communicator]
        assert group.ranks == sorted(rows)
        assert group.start.tolist() == [[row[0] for row in rows[rank]] for rank in group.ranks]
        assert group.end.tolist() == [[row[1] for row in rows[rank]] for rank in group.ranks]
        assert group.operations == [collectives.operation(row[2]) for row in rows[group.ranks[0]]]


def test_of_equal_numbers_the_last_is_taken():
    twice = [(0, 5, "allreduce", "a", 7, 1), (10, 15, "allreduce", "a", 7, 1), (20, 25, "allreduce", "a", 8, 1)]
    once = [(1, 6, "allreduce", "a", 8, 1), (11, 16, "allreduce", "a", 7, 1)]
    (group,), _ = collectives.match([{0: rank_collectives(twice)}, {1: rank_collectives(once)}])
    assert group.start.tolist() == [[10, 20], [11, 1]]


def written(folder, ranks):
    """Write exports whose kernels start and end with their collectives."""
    for rank, rows in ranks.items():
        kernel = {"kernel": "ncclDevKernel_AllReduce"}
        events = [
            event(start, end, rank=rank, name=name, communicator=group, sequence=number, bytes=size, group_size=4)
            for start, end, name, group, number, size in rows
        ]
        export(folder / str(rank), rank, [(row[0], row[1], dict(kernel)) for row in rows], collectives=events)
    return [folder / str(rank) for rank in ranks]


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_sums_by_size_are_those_of_a_plain_program(tmp_path, seed, numbered):
    """Of a collective that all ranks end together the shortest counts, of others each."""
    ranks = random_ranks(np.random.default_rng(seed), numbered)
    wanted = defaultdict(list)
    used = set()
    for rows in plainly_matched(ranks).values():
        for instance in zip(*(rows[rank] for rank in sorted(rows)), strict=True) if rows else ():
            what = collectives.operation(instance[0][2])
            if what in collectives.SYNCHRONISING:
                shortest = min(instance, key=lambda row: row[1] - row[0])
                wanted[collectives.operation(shortest[2]), shortest[5], True].append(shortest[1] - shortest[0])
                used |= {(rank, row[0]) for rank, row in zip(sorted(rows), instance, strict=True)}
    for rank, rows in ranks.items():
        for row in rows:
            if (rank, row[0]) not in used:
                wanted[collectives.operation(row[2]), row[5], False].append(row[1] - row[0])
    summarise_collectives("d", written(tmp_path, ranks), clocks(tmp_path / "clocks.json", {}), tmp_path / "s.parquet")
    found = read_table(tmp_path / "s.parquet", "collective_sizes").to_pylist()
    assert {(row["operation"], row["bytes"], row["matched"]) for row in found} == wanted.keys()
    for row in found:
        times = sorted(wanted[row["operation"], row["bytes"], row["matched"]])
        assert (row["collectives"], row["total_ns"], row["least_ns"]) == (len(times), sum(times), times[0])
        assert row["median_ns"] == times[(len(times) - 1) // 2]


def test_what_is_read_in_pieces_is_what_was_written(tmp_path, monkeypatch):
    ranks = random_ranks(np.random.default_rng(1), numbered=True)
    folders = written(tmp_path, ranks)
    monkeypatch.setattr("causeway.events.event_blocks.CHUNK_ROWS", 7)
    for folder, (rank, rows) in zip(folders, ranks.items(), strict=True):
        assert collective_rows(collectives_of(folder)[rank]) == rows
        (folder / "collectives.parquet").unlink()
        kernels = collective_rows(collectives_of(folder)[rank])
        assert [(start, end) for start, end, *_ in kernels] == [row[:2] for row in rows]
        assert {row[2:] for row in kernels} == {("ncclDevKernel_AllReduce", None, None, -1)}
