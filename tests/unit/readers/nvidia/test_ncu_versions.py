"""Nsight Compute's details page as older versions print it: the first section and its metrics had other names."""

import pytest
from reading import Read

HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name",'
    '"Metric Name","Metric Unit","Metric Value"'
)
VERSIONS = {  # section, then name, unit and value as printed, and what they are here
    "2019": (
        "GPU Speed Of Light",
        [
            ("Memory Frequency", "cycle/second", "770000000.5", "dram_clock", 770000000.5),
            ("SOL FB", "%", "41.25", "gpu_dram", 0.4125),
            ("SM Frequency", "cycle/second", "1140000000", "sm_clock", 1.14e9),
            ("Memory [%]", "%", "42.50", "gpu_comp_mem", 0.425),
            ("Duration", "nsecond", "8992", "gpu_time", 8992),
            ("SOL L2", "%", "13.50", "l2_throughput", 0.135),
            ("SM [%]", "%", "22.50", "sm_throughput", 0.225),
            ("SOL TEX", "%", "11.25", "l1_throughput", 0.1125),
        ],
    ),
    "2020": (
        "GPU Speed Of Light",
        [
            ("DRAM Frequency", "cycle/second", "870000000", "dram_clock", 8.7e8),
            ("SOL DRAM", "%", "73.25", "gpu_dram", 0.7325),
            ("SM Frequency", "cycle/second", "1300000000", "sm_clock", 1.3e9),
            ("Memory [%]", "%", "73.50", "gpu_comp_mem", 0.735),
            ("Duration", "usecond", "212.75", "gpu_time", 212750),
            ("SOL L2 Cache", "%", "44.75", "l2_throughput", 0.4475),
            ("SM [%]", "%", "14.50", "sm_throughput", 0.145),
            ("SOL L1/TEX Cache", "%", "68.75", "l1_throughput", 0.6875),
        ],
    ),
    "2021": (
        "GPU Speed Of Light Throughput",
        [
            ("Memory [%]", "%", "57.25", "gpu_comp_mem", 0.5725),
            ("DRAM Throughput", "%", "24.50", "gpu_dram", 0.245),
            ("Duration", "usecond", "56", "gpu_time", 56000),
            ("Compute (SM) [%]", "%", "4.50", "sm_throughput", 0.045),
        ],
    ),
}


@pytest.mark.parametrize("version", VERSIONS)
def test_metrics_of_the_first_section_have_their_names(version, tmp_path):
    section, metrics = VERSIONS[version]
    rows = [
        f'"{launch}","7","app","127.0.0.1","k(int)","2020-May-29 12:02:4{launch}","1","7","{section}","{name}","{unit}",'
        f'"{value}"'
        for launch in range(2)
        for name, unit, value, _, _ in metrics
    ]
    path = tmp_path / "details.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    assert export.issue("derived_duration") is None
    for _, _, _, ours, value in metrics:
        assert export.counters.column(ours).to_pylist() == pytest.approx([value, value])


def test_units_of_devices_with_clusters_are_known(tmp_path):
    rows = [
        ("ID", "Process ID", "Kernel Name", "Device", "CC", "gpu__time_duration.sum", "launch__cluster_max_active"),
        ("", "", "", "", "", "ns", "cluster"),
        ("0", "7", "k(int)", "0", "10.0", "9920", "2"),
    ]
    path = tmp_path / "raw.csv"
    lines = [",".join(f'"{cell}"' for cell in row) for row in rows]
    path.write_text("\n".join(["==PROF== Disconnected from process 7", *lines]) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.count("unknown_units") == 0
    assert export.counters.schema.field("launch__cluster_max_active").metadata[b"unit"] == b"clusters"
