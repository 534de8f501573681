"""Devices of telemetry and of the dataset: by UUID, by index, by order of ranks, or left out with the reason."""

import hashlib
from pathlib import Path

import pytest

from causeway.core.clock import Clock
from causeway.telemetry.device_matching import DatasetDevice, TimedExport, match_devices
from causeway.telemetry.readings import SourceDevice


def export(rank, device, node="n0", gpu=""):
    own = DatasetDevice(export=str(rank), rank=rank, device=device, gpu=gpu)
    return TimedExport(
        name=str(rank),
        node=node,
        folder=Path(),
        clock=Clock(),
        session_start_ns=0,
        first_ns=0,
        last_ns=1,
        devices=(own,),
    )


def digest(uuid):
    return f"g{hashlib.sha256(uuid.encode()).hexdigest()[:12]}"


def ranks(matched):
    return {(one.node, one.index): (device.rank, by) for one, (device, by) in matched.items()}


@pytest.mark.parametrize("prefix", ["", "GPU-"])
def test_a_uuid_decides_whatever_the_index_says(prefix):
    uuids = ["a8a99508-235c-1ac9-454c-6a98d38f97d4", "0a299508-235c-1ac9-454c-6a98d38f97d4"]
    exports = [export(rank, 0, gpu=digest(prefix + uuid)) for rank, uuid in enumerate(uuids)]
    sources = [SourceDevice(index=str(1 - at), uuid=f"GPU-{uuid}") for at, uuid in enumerate(uuids)]
    matched, unmatched = match_devices(sources, exports)
    assert ranks(matched) == {("", "1"): (0, "uuid"), ("", "0"): (1, "uuid")}
    assert not unmatched
    stranger = SourceDevice(index="0", uuid="GPU-ffffffff-235c-1ac9-454c-6a98d38f97d4")
    assert match_devices([stranger], exports)[1] == {stranger: "unknown_device"}


def test_indices_on_several_nodes():
    exports = [export(rank, rank % 2, node=f"n{rank // 2}") for rank in range(4)]
    sources = [SourceDevice(node=node, index=index) for node in ("n0", "N1.cluster.org") for index in "01"]
    matched, _ = match_devices(sources, exports)
    assert sorted(value for value in ranks(matched).values()) == [(rank, "index") for rank in range(4)]
    _, unmatched = match_devices([SourceDevice(node="n9", index="0"), SourceDevice(index="0")], exports)
    assert set(unmatched.values()) == {"unknown_node"}


def test_ranks_that_each_call_their_device_0_are_taken_in_order_and_it_is_said():
    exports = [export(rank, 0) for rank in (4, 5, 6)]
    sources = [SourceDevice(index=str(index)) for index in (0, 1, 2)]
    assert ranks(match_devices(sources, exports)[0]) == {
        ("", "0"): (4, "rank_order"),
        ("", "1"): (5, "rank_order"),
        ("", "2"): (6, "rank_order"),
    }
    matched, unmatched = match_devices([*sources, SourceDevice(index="3")], exports)
    assert not matched
    assert unmatched[sources[0]] == "ambiguous_device"


def test_one_device_on_either_side():
    source = SourceDevice(index="")
    assert match_devices([source], [export(0, 0)])[0][source][1] == "only_one"


def test_bus_addresses_are_devices_in_order_where_there_are_as_many():
    exports = [export(rank, 0) for rank in (4, 5)]
    sources = [SourceDevice(index=bus) for bus in ("00000000:c1:00.0", "00000000:0a:00.0")]
    assert ranks(match_devices(sources, exports)[0]) == {
        ("", "00000000:0a:00.0"): (4, "rank_order"),
        ("", "00000000:c1:00.0"): (5, "rank_order"),
    }
    matched, unmatched = match_devices(sources, [export(0, 0)])
    assert not matched
    assert set(unmatched.values()) == {"bus_address"}
    assert match_devices(sources[:1], [export(0, 0)])[0][sources[0]][1] == "only_one"
