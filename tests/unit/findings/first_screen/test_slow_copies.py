"""A rank that is late as its copies are slow, from other memory of the host than the others'."""

from dataclasses import replace

import first_screen_samples as made
import pyarrow as pa
import pyarrow.parquet as pq
from first_screen_samples import MS, run, tables

from causeway.findings.first_screen import losses
from causeway.findings.first_screen.advice import advice
from causeway.findings.first_screen.device_differences import slow_copies_facts


def test_the_memory_of_one_rank_is_not_told_of_all_and_the_rank_is_to_be_looked_at_once(tmp_path):
    columns = {"rank": [0, 1, 2, 3], "device": [0] * 4, "copy_kind": [1] * 4, "src_kind": [1, 1, 1, 0]}
    columns |= {"dst_kind": [2] * 4, "duration_ns": [MS] * 4, "bytes": [1] * 4}
    pq.write_table(pa.table(columns), tmp_path / "transfers.parquet")
    rows = [
        {"rank": rank, "device": 0, "kind": 1, "copies": 10, "bytes": 10**9, "duration_ns": round(1e9 / speed)}
        | {"sized_ns": round(1e9 / speed), "limit_gb_per_s": None}
        for rank, speed in enumerate((25.0, 25.0, 25.0, 5.0))
    ]
    given = tables(folders=[tmp_path], efficiency=made.efficiency(copies=rows))
    assert losses._copies(given)[0].memory is None  # "pageable memory" would be false of three of the four
    many = run(devices=4, ranks=4, elapsed_ns=1000 * MS)
    (fact,) = slow_copies_facts(given, many)
    late = losses.LateRankFact(
        group=0, ranks=[3], of_ranks=4, last=9, collectives=9, waited_ns=99 * MS, saved_ns=99 * MS, is_bound=False,
        cause="copies", kernel=None, is_often=True, query="",
    )  # fmt: skip
    (step,) = advice(many, [], [], [late], [], (), [fact])
    assert step.words.startswith("Pin the host's memory on rank 3, as on the others")
    both = advice(many, [], [], [replace(late, ranks=[1])], [], (), [fact])
    assert "Look at what rank 1 copies and the others do not." in [step.words for step in both]
