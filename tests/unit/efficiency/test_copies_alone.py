"""An export of copies without any launch: it has a device, and the time of its copies is measured."""

from efficiency_samples import clocks

from causeway.core.tables import read_json, read_table
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.readers.normalise import normalise

HEAD = '"Kind","Direction","Source_Agent_Id","Destination_Agent_Id","Correlation_Id","Start_Timestamp","End_Timestamp"'
CHOICES = {"bins": 10, "regions": 5}


def test_copies_without_launches_have_a_device_and_times(tmp_path):
    rows = ['"MEMORY_COPY","HOST_TO_DEVICE",0,1,1,10000,13000', '"MEMORY_COPY","HOST_TO_DEVICE",0,1,2,20000,23000']
    (tmp_path / "c.csv").write_text("\n".join([HEAD, *rows, ""]))
    folder = tmp_path / "tables" / "0"
    assert normalise(tmp_path / "c.csv", folder, export="0", source="c.csv", rank=0)["tables"]["transfers"] == 2
    assert read_table(folder / "devices.parquet", "devices").select(["rank", "device"]).to_pylist() == [
        {"rank": 0, "device": 1}
    ]
    clocks(tmp_path / "clocks.json", {"0": 0})
    outs = tmp_path / "efficiency.json", tmp_path / "efficiency.parquet"
    measure_efficiency("d", [folder], tmp_path / "clocks.json", CHOICES, *outs)
    document = read_json(outs[0])
    assert document["elapsed_ns"] == 13_000
    assert document["breakdown"]["0/1"]["idle_ns"] == 7_000
