"""Arguments of collectives that no column can hold are no value, whatever stands in the trace."""

from types import SimpleNamespace

import numpy as np
import pytest
from reading import Read, kernel, write_trace

from causeway.efficiency.ranks.collectives import matched
from causeway.readers.pytorch.collective_arguments import take_collectives

NULL = -(1 << 63)


@pytest.mark.parametrize(
    ("elements", "size"), [(4, 16), (-1, None), (1 << 61, None), (1 << 62, None), (10**30, None), ("x", None)]
)
def test_a_size_that_does_not_fit_is_no_size(elements, size):
    taken = {}
    codes = SimpleNamespace(code=lambda _: 0)
    sink = SimpleNamespace(
        collective_names=codes, communicators=codes, take=lambda *_, **columns: taken.update(columns)
    )
    zero = np.zeros(1, np.int64)
    arguments = [{"Collective name": "allreduce", "dtype": "Float", "In msg nelems": elements, "Seq": elements}]
    take_collectives(sink, zero, zero, zero, {"device": zero}, arguments)
    assert taken["bytes"].tolist() == [NULL if size is None else size]
    assert taken["group_size"].tolist() == [NULL]


@pytest.mark.parametrize("numbered", [True, False])
def test_process_groups_that_share_a_stream_are_told_apart_by_their_names(tmp_path, numbered):
    """Two groups of the same ranks, whose collectives each rank issues in another order on its only stream."""
    orders = ("ababab", "bbaaba")
    folders = []
    starts = {"a": [], "b": []}
    for rank, order in enumerate(orders):
        events = []
        own = {"a": [], "b": []}
        for at, group in enumerate(order):
            args = {"Collective name": "allreduce", "In msg nelems": 8, "Out msg nelems": 8, "dtype": "Float"}
            args |= {"Group size": 2, "Process Group Name": group, "Process Group Ranks": "[0, 1]"}
            if numbered:
                args["Seq"] = len(own[group])
            own[group].append(10_000 * at + 1000 * (1 + rank))
            name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
            events.append(kernel(f"{10 * at + 1 + rank}.000", "5.000", name, stream=20, **args))
        for group, found in own.items():
            starts[group].append(found)
        info = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}}
        Read(write_trace(tmp_path / f"{rank}.json", events, **info), tmp_path / f"e{rank}")
        folders.append(tmp_path / f"e{rank}")
    groups, notes = matched(folders)
    assert notes == []
    assert [one.communicator for one in groups] == ["a [0, 1]", "b [0, 1]"]
    for one, group in zip(groups, "ab", strict=True):
        assert one.start.tolist() == starts[group]
