"""Efficiency and idle time over MPI ranks: the same bytes on any number of ranks."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from causeway.core.files.checked_parquet import CheckedParquet
from causeway.core.tables import read_json, read_table
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.efficiency.steps.find_steps import find_steps
from causeway.numeric.mpi import Ranks
from support import ROOT

sys.path.insert(0, str(ROOT / "tests" / "unit" / "efficiency"))
sys.path.insert(0, str(ROOT / "tests" / "unit" / "variability"))

from efficiency_samples import clocks, event, export
from test_operator_summary import write_export as write_operators

CHOICES = {"bins": 40, "regions": 5}
EXPORTS = 5
RESULTS = {
    "measure_efficiency": ("efficiency.json", "efficiency.parquet"),
    "explain_waiting": ("waiting.parquet",),
    "find_steps": ("steps.json", "steps.parquet", "step_causes.parquet"),
    "find_stragglers": ("stragglers.json", "stragglers.parquet"),
    "summarise_collectives": ("collective_sizes.parquet",),
    "summarise_operators": ("operator_summary.parquet",),
}
"""Files that each function writes."""


def random_export(folder, rank):
    """Write an export of a rank with all kinds of events; ranks 0 and 1 share a GPU, those below 3 have numbered
    collectives for which rank 1 is late, rank 3 has far more launches.
    """
    rng = np.random.default_rng(rank)
    n = 1500 if rank == 3 else 200
    starts = np.sort(rng.integers(0, 400 * n, n)).tolist()
    spans = rng.integers(1, 900, n).tolist()
    names = rng.choice(["gemm", "softmax", "ncclDevKernel_AllReduce", "copyBuffer"], n).tolist()
    kernels = [
        (start, start + span, {"kernel": name, "stream": int(stream), "correlation": at, "device": 0})
        for at, (start, span, name, stream) in enumerate(zip(starts, spans, names, rng.integers(0, 3, n), strict=True))
    ]
    calls = [(start - 50, start - 20, {"correlation": at, "thread": at % 2}) for at, start in enumerate(starts)]
    copies = [(start + 100, start + 260, {"bytes": 100, "stream": 9}) for start in starts[::5]]
    begins = [begin for begin in range(0, 400 * n, 10_000) if begin not in (200_000, 210_000)]  # a step thrice as long
    ranges = [(begin, begin + 3000, {"name": f"step {number}"}) for number, begin in enumerate(begins)]
    collectives = [
        event(2000 * number + late - 37 * rank, 2000 * number + 1000 - 37 * rank, rank=rank, name="all_reduce")
        | {"communicator": "world", "sequence": number, "bytes": 4096 << number % 3, "group_size": 3}
        for number in range(1, 39)
        for late in [500 if rank == 1 else number % 7]
    ]
    return export(
        folder / str(rank),
        rank,
        kernels,
        copies,
        calls=calls,
        mpi=[(start + 300, start + 350) for start in starts[::7]],
        ranges=ranges,
        node=f"node{rank // 2}",
        identity="GPU-1" if rank < 2 else None,
        collectives=collectives if rank < 3 else [],
    )


def call(folder, module, function, *arguments):
    """Return one entry of `ranks_of_many_sizes.py`; the results that `RESULTS` names are the last arguments."""
    return {
        "module": f"causeway.{module}",
        "function": function,
        "arguments": [*arguments, *(f"OUT/{name}" for name in RESULTS[function])],
        "out": str(folder / function),
    }


def write_dataset(folder):
    """Write a dataset; return the entries of `ranks_of_many_sizes.py` for every program over its exports."""
    folders = [random_export(folder / "tables", rank) for rank in range(EXPORTS)]
    clocks(folder / "clocks.json", {str(rank): 37 * rank for rank in range(EXPORTS)})
    of_dataset = ["d", [str(one) for one in folders], str(folder / "clocks.json")]
    steps = folder / "steps.parquet"
    find_steps(*of_dataset, 1, folder / "steps.json", steps, folder / "step_causes.parquet")
    by_operator = [str(folder / "by_operator" / str(number)) for number in range(EXPORTS)]
    for number, place in enumerate(by_operator):
        write_operators(Path(place), number, launches=100 if number else 700)
    return [
        call(folder, "efficiency.measure_efficiency", "measure_efficiency", *of_dataset, CHOICES),
        call(folder, "waiting.explain_waiting", "explain_waiting", *of_dataset, str(steps)),
        call(folder, "efficiency.steps.find_steps", "find_steps", *of_dataset, 1),
        call(folder, "efficiency.ranks.find_stragglers", "find_stragglers", *of_dataset, 1),
        call(folder, "efficiency.ranks.collective_sizes", "summarise_collectives", *of_dataset),
        call(folder, "variability.operator_summary", "summarise_operators", "d", by_operator),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory, on_ranks):
    """Write a dataset and measure it on every number of ranks, in one session; return its folder."""
    folder = tmp_path_factory.mktemp("ranks")
    on_ranks(folder, write_dataset(folder))
    return folder


@pytest.mark.parametrize(("program", "name"), [(program, name) for program, names in RESULTS.items() for name in names])
def test_the_same_bytes(made, sizes, program, name):
    first, *others = [(made / program / str(size) / name).read_bytes() for size in sizes]
    for size, other in zip(sizes[1:], others, strict=True):
        assert other == first, f"{size} ranks"


def test_the_results_are_of_all_exports(made, most_ranks):
    """Equal bytes of nothing would prove nothing."""
    most = str(most_ranks)
    document = read_json(made / "measure_efficiency" / most / "efficiency.json")
    assert document["launch_path"]["launches"] == 4 * 200 + 1500
    assert "step *" in json.dumps(document)
    assert len(document["shared"]) == 1
    assert CheckedParquet(made / "measure_efficiency" / most / "efficiency.parquet").metadata.num_rows > 40
    waiting = read_table(made / "explain_waiting" / most / "waiting.parquet", "waiting")
    assert set(waiting.column("rank").to_pylist()) == set(range(EXPORTS))
    assert len(set(waiting.column("reason").to_pylist())) > 2
    assert waiting.column("step").null_count < waiting.num_rows
    steps = read_table(made / "find_steps" / most / "steps.parquet", "steps")
    assert set(steps.column("rank").to_pylist()) == set(range(EXPORTS))
    assert read_table(made / "find_steps" / most / "step_causes.parquet", "step_causes").num_rows > 0
    stragglers = read_json(made / "find_stragglers" / most / "stragglers.json")
    assert stragglers["variance"]["launches"] == 4 * 200 + 1500
    assert any("why" in entry for group in stragglers["groups"] for entry in group["ranks"])
    sizes = read_table(made / "summarise_collectives" / most / "collective_sizes.parquet", "collective_sizes")
    assert {True, False} == set(sizes.column("matched").to_pylist())
    assert {4096, 8192, 16384} < set(sizes.column("bytes").to_pylist())
    operators = read_table(made / "summarise_operators" / most / "operator_summary.parquet", "operator_summary")
    of_level = [row["launches"] for row in operators.to_pylist() if row["level"] == "operator"]
    assert sum(of_level) == 700 + 100 * (EXPORTS - 1)


def test_one_damaged_export_ends_with_its_error(made, tmp_path):
    broken = tmp_path / "0"
    broken.mkdir()
    for path in (made / "tables" / "0").iterdir():
        (broken / path.name).write_bytes(path.read_bytes())
    (broken / "launches.parquet").write_bytes(b"PAR1")
    clocks(tmp_path / "clocks.json", {"0": 0})
    with pytest.raises(Exception, match=r"launches.parquet"):
        measure_efficiency(
            "d", [broken], tmp_path / "clocks.json", CHOICES, tmp_path / "e.json", tmp_path / "e.parquet"
        )


class _Numbered(Ranks):
    """A rank by number, without MPI."""

    def __init__(self, rank, size):
        super().__init__()
        self.rank = rank
        self.size = size


@pytest.mark.parametrize("costs", [[], [5], [1] * 9, [100, 1, 1, 1, 50, 50], [3, 3, 2, 2, 2]])
@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_pieces_are_dealt_once_each_and_evenly(costs, size):
    shares = [_Numbered(rank, size).share_of(costs) for rank in range(size)]
    assert sorted(piece for share in shares for piece in share) == list(range(len(costs)))
    loads = [sum(costs[piece] for piece in share) for share in shares]
    best = max(sum(costs) / size, max(costs, default=0))  # no division can be better
    assert max(loads) <= 4 / 3 * best + (max(costs, default=0) if size > 1 else 0) / 3
