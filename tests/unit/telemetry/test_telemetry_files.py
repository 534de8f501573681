"""Files as the tools write them: recognised, read to the values that stand in them, defects counted and named."""

import gzip

import pytest

from causeway.core.errors import ExportError
from causeway.telemetry.readings import MOST_METRICS, Readings
from causeway.telemetry.telemetry_files import detect_format, read_source
from causeway.telemetry.text_values import zone_of

AT = 1_714_557_600_000_000_000
"""2024-05-01 10:00:00 UTC."""
SMI = """timestamp, index, uuid, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], clocks_event_reasons.active, name
2024/05/01 10:00:00.123, 0, GPU-1a, 62.50 W, 1980 MHz, 98 %, 0x0000000000000004, NVIDIA H100
2024/05/01 10:00:00.125, 1, GPU-1b, [N/A], [Not Supported], 7 %, 0x0000000000000001, NVIDIA H100
timestamp, index, uuid, power.draw [W], clocks.current.sm [MHz], utilization.gpu [%], clocks_event_reasons.active, name
2024/05/01 10:00:01.123, 0, GPU-1a, 63
2024/05/01 10:00:01.123, 0, GPU-1a, oops, 1200 MHz, 97 %, 0x0, NVIDIA H100
"""
DMON = """#Date       Time        gpu   pwr gtemp mtemp    sm   mem  mclk  pclk pviol tviol
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %   MHz   MHz     %  bool
 20240501   10:00:00      0    31    34     -    50     0   715  1189    20     1
#Date       Time        gpu   pwr gtemp mtemp    sm   mem  mclk  pclk pviol tviol
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %   MHz   MHz     %  bool
 20240501   10:00:01      1    33    34     -     0     0   715  1189     0     0
"""
DCGMI = """2024-05-01T12:00:00.5+0200 #Entity   GPUTL   POWER   SMCLK   XXXXX
2024-05-01T12:00:00.5+0200 ID                  W
2024-05-01T12:00:00.5+0200 GPU 0     75      42.5    N/A     1
2024-05-01T12:00:01.5+0200 GPU 1     50      43.5    1980    1
2024-05-01T12:00:01.5+0200 GPU-I 3   50      43.5    1980    1
"""
EXPORTER = """# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
# time: 1714557600.25
DCGM_FI_DEV_SM_CLOCK{gpu="0", UUID="GPU-8c", device="nvidia0", modelName="a, } \\"b\\"", Hostname="n1"} 885
DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-8c",Hostname="n1"} 9223372036854775794
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-8c",Hostname="n1"} 23.528000 1714557600500
DCGM_FI_DEV_UNHEARD_OF{gpu="0",UUID="GPU-8c",Hostname="n1"} 1
broken line {
"""
AMD = """timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,hotspot,mem,throttle_status
1714557600,0,95,80,"['N/A', 'N/A']",1180,2100,2000,78,60,THROTTLED
1714557601,1,0,0,"[0, 0]",N/A,N/A,2000,44,24,UNTHROTTLED
"""
ROCM = """timestamp,device,GPU use (%),Average Graphics Package Power (W),Temperature (Sensor junction) (C),sclk clock speed:
2024-05-01T10:00:00,card0,12,75.0,42.0,(500Mhz)
"""
LDMS = """#Time,Time_usec,ProducerName,component_id,job_id,app_id,gpu_id,sm_clock,power_usage
1714557600.500000,500000,nid000001,1,2,0,3,1980,300.5
"""
LDMS_WIDE = """#Time,Time_usec,ProducerName,gpu0.sm_clock,gpu1.sm_clock,power_usage#1
1714557600.500000,500000,nid000001,1980,1200,300
"""
LONG = """time,node,device,metric,value
2024-05-01T10:00:00Z,n1,0,power_w,300
1714557600000000123,n1,0,DCGM_FI_DEV_SM_CLOCK,1980
1714557601,n1,0,my_own_metric,7
1714557601,n1,0,<b>bad</b> name,7
"""


def read(tmp_path, text, name="auto", zone="", low=0, high=2**62, **row):
    """Read a text; return the readings, and (ns since `AT`, node, index, metric) -> value."""
    path = tmp_path / "telemetry.csv"
    path.write_text(text)
    readings = Readings(low_ns=low, high_ns=high, zone=zone_of(zone), **row)
    readings.found = read_source(path, name, readings)
    devices = {number: one for one, number in readings.devices.items()}
    metrics = list(readings.metrics)
    values = {
        (int(time) - AT, devices[device].node, devices[device].index, metrics[metric]): float(value)
        for time, device, metric, value in zip(*readings.columns(), strict=True)
    }
    return readings, values


def test_nvidia_smi(tmp_path):
    readings, values = read(tmp_path, SMI)
    assert readings.found == "nvidia-smi"
    assert values[123_000_000, "", "0", "power_w"] == 62.5
    assert values[123_000_000, "", "0", "sm_clock_hz"] == 1.98e9
    assert values[123_000_000, "", "0", "gpu_utilisation_ratio"] == 0.98
    assert values[123_000_000, "", "0", "throttle_power_cap"] == 1
    assert values[123_000_000, "", "0", "throttle_hw_slowdown"] == 0
    assert values[125_000_000, "", "1", "throttle_power_cap"] == 0
    assert (125_000_000, "", "1", "power_w") not in values
    assert values[1_123_000_000, "", "0", "sm_clock_hz"] == 1.2e9
    assert readings.bad["wrong_length"][0] == 1
    assert readings.bad["no_number"] == [1, "oops"]
    assert list(readings.ignored) == ["name"]
    assert {one.uuid for one in readings.devices} == {"GPU-1a", "GPU-1b"}


def test_nvidia_smi_without_units_and_in_another_zone(tmp_path):
    text = "timestamp, power.draw [W], utilization.gpu [%]\n2024/05/01 12:00:00.000, 50.1, 97\n"
    _, values = read(tmp_path, text, zone="Europe/Berlin", node="n7", device="3")
    assert values == {(0, "n7", "3", "power_w"): 50.1, (0, "n7", "3", "gpu_utilisation_ratio"): 0.97}


@pytest.mark.parametrize(
    ("text", "before"),
    [
        (AMD, "'CTRL' + 'C' to stop watching output:\n"),
        (ROCM, "\nWARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n"),
        (SMI, "Recording, please wait\n"),
    ],
)
def test_what_a_tool_says_before_its_header_is_passed_over(tmp_path, text, before):
    readings, values = read(tmp_path, before + text)
    plain, wanted = read(tmp_path, text)
    assert values == wanted
    assert readings.rows == plain.rows
    assert readings.bad == plain.bad


def rows_of_two(header, cells):
    """Return a query's rows of two devices, read each second one 4 ms after the other."""
    rows = [
        f"2024/05/01 10:00:{second:02d}.{100 + 4 * at}, {cells[at]}{50 + at * 200} W"
        for second in range(6)
        for at in (0, 1)
    ]
    return "\n".join([header, *rows]) + "\n"


def test_nvidia_smi_tells_devices_apart_by_bus_address(tmp_path):
    text = rows_of_two("timestamp, pci.bus_id, power.draw [W]", ["00000000:0A:00.0, ", "00000000:C1:00.0, "])
    readings, values = read(tmp_path, text)
    assert values[100_000_000, "", "00000000:0a:00.0", "power_w"] == 50
    assert values[104_000_000, "", "00000000:c1:00.0", "power_w"] == 250
    assert not readings.ignored
    one = "\n".join(line for line in text.splitlines() if "C1" not in line)
    assert {one.index for one in read(tmp_path, one, device="3")[0].devices} == {"3"}


def test_rows_of_several_devices_that_no_column_names_are_refused(tmp_path):
    text = rows_of_two("timestamp, power.draw [W]", ["", ""])
    with pytest.raises(ExportError, match=r"take turns.*index,uuid"):
        read(tmp_path, text)
    with pytest.raises(ExportError, match="take turns"):
        read(tmp_path, text, device="3")
    one = "\n".join(line for line in text.splitlines() if "250 W" not in line)
    assert len(read(tmp_path, one)[1]) == 6
    paused = [f"2024/05/01 {hour}:00:{at:02d}.000, 50 W" for hour in (10, 12) for at in range(40)]
    assert len(read(tmp_path, "\n".join(["timestamp, power.draw [W]", *paused]))[1]) == 80
    # a device that is read ten times in a second whose time is written in whole seconds
    coarse = [f"2024/05/01 10:00:{at // 10:02d}, 50 W" for at in range(100)]
    assert len(read(tmp_path, "\n".join(["timestamp, power.draw [W]", *coarse]))[1]) == 10


def test_nvidia_smi_dmon(tmp_path):
    readings, values = read(tmp_path, DMON)
    assert readings.found == "nvidia-smi-dmon"
    assert values[0, "", "0", "gpu_utilisation_ratio"] == 0.5
    assert values[0, "", "0", "throttle_power_ratio"] == 0.2
    assert values[0, "", "0", "throttle_thermal"] == 1
    assert values[10**9, "", "1", "power_w"] == 33
    assert (0, "", "0", "memory_temperature_celsius") not in values
    assert not readings.bad


def test_dmon_without_dates_says_how_to_record_them(tmp_path):
    text = "# gpu   pwr gtemp    sm\n# Idx     W     C     %\n    0    31    34     5\n"
    with pytest.raises(ExportError, match="-o DT"):
        read(tmp_path, text)


def test_pmon_is_not_taken_for_dmon(tmp_path):
    # what each process uses: the first one's share is not what the device did
    text = """#Date       Time        gpu         pid   type     sm    mem    command
#YYYYMMDD   HH:MM:SS    Idx           #    C/G      %      %    name
 20240501   10:00:00      0       1234     C     60     20    python
 20240501   10:00:00      0       5678     C     30     10    python
"""
    with pytest.raises(ExportError, match=r"processes.*dmon -o DT"):
        read(tmp_path, text)


def test_dcgmi_dmon(tmp_path):
    readings, values = read(tmp_path, DCGMI)
    assert readings.found == "dcgmi"
    assert values == {
        (500_000_000, "", "0", "gpu_utilisation_ratio"): 0.75,
        (500_000_000, "", "0", "power_w"): 42.5,
        (1_500_000_000, "", "1", "gpu_utilisation_ratio"): 0.5,
        (1_500_000_000, "", "1", "power_w"): 43.5,
        (1_500_000_000, "", "1", "sm_clock_hz"): 1.98e9,
    }
    assert readings.bad["part_of_a_gpu"][0] == 1
    plain = "\n".join(line.split(" ", 1)[1] for line in DCGMI.splitlines())
    with pytest.raises(ExportError, match="no time before its rows"):
        read(tmp_path, plain)


def test_a_utilisation_of_thousands_of_percent_is_left_out_and_shown(tmp_path):
    # DCGM gives such values now and then (its issue 199)
    rows = "".join(
        f"2024-05-01T10:00:0{at}+0000 GPU 0 {value} 0.5\n" for at, value in enumerate(("98", "4294967295", "2000"))
    )
    readings, values = read(tmp_path, f"2024-05-01T10:00:00+0000 #Entity GPUTL SMACT\n{rows}")
    assert [value for key, value in values.items() if key[3] == "gpu_utilisation_ratio"] == [0.98]
    assert [value for key, value in values.items() if key[3] == "sm_active_ratio"] == [0.5] * 3
    assert readings.bad == {"impossible_ratio": [2, "42949672.95"]}
    long = (
        "time,device,metric,value\n2024-05-01T10:00:00Z,0,speedup_ratio,7\n2024-05-01T10:00:00Z,0,sm_active_ratio,7\n"
    )
    readings, values = read(tmp_path, long)  # of a name that is not ours nothing is known
    assert values == {(0, "", "0", "speedup_ratio"): 7.0}


def test_dcgmi_dmon_of_an_older_version(tmp_path):
    text = DCGMI.replace("#Entity", "# Entity").replace(" ID ", "       Id ")
    readings, values = read(tmp_path, text)
    assert values == read(tmp_path, DCGMI)[1]
    assert list(readings.bad) == ["part_of_a_gpu"]


def test_dcgmi_dmon_with_reasons_and_limits(tmp_path):
    # short names of fields 112, 160, 164, 190 in DCGM's dcgm_fields.cpp, one GPU and one that has none of them
    text = "".join(
        f"2024-05-01T10:00:00+0000 {row}\n"
        for row in (
            "#Entity   DVCCTR                PMLMT       EPLMT       PSTAT",
            "ID                              W           W           ",
            "GPU 1     68                    700.000     650.000     2    ",
            "GPU 0     N/A                   N/A         N/A         N/A  ",
        )
    )
    readings, values = read(tmp_path, text)
    assert {name for *_, name in values if values[0, "", "1", name] and name.startswith("throttle")} == {
        "throttle_power_cap",
        "throttle_hw_thermal",
    }
    assert values[0, "", "1", "power_limit_w"] == 700
    assert values[0, "", "1", "enforced_power_limit_w"] == 650
    assert values[0, "", "1", "performance_state"] == 2
    assert {index for _, _, index, _ in values} == {"1"}
    assert not readings.bad
    assert not readings.ignored


def test_exporter_dumps(tmp_path):
    readings, values = read(tmp_path, EXPORTER)
    assert readings.found == "dcgm-exporter"
    assert values == {
        (250_000_000, "n1", "0", "sm_clock_hz"): 8.85e8,
        (500_000_000, "n1", "0", "power_w"): 23.528,
    }
    assert readings.bad["no_row"][0] == 1
    assert list(readings.ignored) == ["dcgm_fi_dev_unheard_of"]
    timeless = EXPORTER.replace("# time: 1714557600.25\n", "").replace(" 1714557600500", "")
    with pytest.raises(ExportError, match="no line has a time"):
        read(tmp_path, timeless)


def test_what_an_exporter_says_of_an_instance_is_not_said_of_its_gpu(tmp_path):
    labels = '{gpu="0",UUID="GPU-8c",GPU_I_PROFILE="1g.10gb",GPU_I_ID="%d",Hostname="n1"}'
    lines = ["# time: 1714557600"]
    for instance, active in ((7, 0.9), (8, 0.1)):
        own = labels % instance
        lines += [f"DCGM_FI_PROF_SM_ACTIVE{own} {active}", f"DCGM_FI_DEV_FB_USED{own} 100"]
        lines += [f"DCGM_FI_DEV_POWER_USAGE{own} 250", f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{own} 4"]
    lines.append(f"DCGM_FI_PROF_SM_ACTIVE{labels.replace('%d', '')} 0.5")
    readings, values = read(tmp_path, "\n".join(lines) + "\n")
    assert readings.bad["part_of_a_gpu"] == [4, "DCGM_FI_PROF_SM_ACTIVE of instance 7"]
    assert values[0, "n1", "0", "sm_active_ratio"] == 0.5  # an empty label: the whole GPU
    assert values[0, "n1", "0", "power_w"] == 250
    assert values[0, "n1", "0", "throttle_power_cap"] == 1
    assert (0, "n1", "0", "memory_used_bytes") not in values


def test_amd_smi_rocm_smi_and_ldms(tmp_path):
    readings, values = read(tmp_path, AMD)
    assert readings.found == "amd-smi"
    assert values[0, "", "0", "power_w"] == 1180
    assert values[0, "", "0", "throttle_any"] == 1
    assert values[10**9, "", "1", "gpu_utilisation_ratio"] == 0
    assert (10**9, "", "1", "sm_clock_hz") not in values
    unknown = AMD.replace("1180,2100,", "65535,65535,")  # 0xffff: the driver does not give them
    readings, without = read(tmp_path, unknown)
    assert {key: values[key] for key in values.keys() - without.keys()} == {
        (0, "", "0", "power_w"): 1180,
        (0, "", "0", "sm_clock_hz"): 2.1e9,
    }
    assert not readings.bad
    readings, values = read(tmp_path, ROCM)
    assert readings.found == "rocm-smi"
    assert values[0, "", "0", "sm_clock_hz"] == 5e8
    assert values[0, "", "0", "temperature_celsius"] == 42
    _, values = read(tmp_path, ROCM.replace("GPU use (%)", "GPU Memory Read/Write Activity (%)"))  # since ROCm 6
    assert values[0, "", "0", "memory_utilisation_ratio"] == 0.12
    readings, values = read(tmp_path, LDMS)
    assert readings.found == "ldms"
    assert values == {
        (500_000_000, "nid000001", "3", "sm_clock_hz"): 1.98e9,
        (500_000_000, "nid000001", "3", "power_w"): 300.5,
    }
    _, values = read(tmp_path, LDMS_WIDE)
    assert values == {
        (500_000_000, "nid000001", "0", "sm_clock_hz"): 1.98e9,
        (500_000_000, "nid000001", "1", "sm_clock_hz"): 1.2e9,
        (500_000_000, "nid000001", "1", "power_w"): 300.0,
    }


def test_an_ldms_header_in_a_file_beside(tmp_path):
    header, row = LDMS.splitlines()
    (tmp_path / "telemetry.csv.HEADER").write_text(header + "\n")
    _, values = read(tmp_path, row + "\n", "ldms")
    assert values[500_000_000, "nid000001", "3", "power_w"] == 300.5


def test_the_long_form(tmp_path):
    readings, values = read(tmp_path, LONG)
    assert readings.found == "long"
    assert values == {
        (0, "n1", "0", "power_w"): 300.0,
        (123, "n1", "0", "sm_clock_hz"): 1.98e9,
        (10**9, "n1", "0", "my_own_metric"): 7.0,
    }
    assert list(readings.ignored) == ["<b>bad</b> name"]


def test_packed_files_and_only_the_window(tmp_path):
    path = tmp_path / "smi.csv.gz"
    path.write_bytes(gzip.compress(SMI.encode()))
    readings = Readings(low_ns=AT, high_ns=AT + 500_000_000, zone=zone_of(""))
    assert read_source(path, "auto", readings) == "nvidia-smi"
    assert set((readings.columns()[0] - AT).tolist()) == {123_000_000, 125_000_000}
    assert readings.outside == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "hello\nworld\n",
        "\x00\x01\x02" * 999,
        "a" * 3_000_000,
        "timestamp\n",
        "<html><body>\n</body></html>",
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with pytest.raises(ExportError, match="expected"):
        detect_format(path)


def test_names_and_metrics_without_end_stay_bounded(tmp_path):
    rows = [f"{AT + i},n1,0,metric_{i},1" for i in range(5000)]
    rows += [f"{AT},{'n' * 100_000}{i},0,power_w,1" for i in range(3)]
    readings, _ = read(tmp_path, "\n".join(["time,node,device,metric,value", *rows, "x" * 3_000_000]) + "\n")
    assert len(readings.metrics) <= MOST_METRICS
    assert max(len(one.node) for one in readings.devices) <= 200
    assert readings.bad["too_long"][0] == 1
    assert len(readings.ignored) <= 20


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "2024/05/01 10:00:00.123, 0, 62.50 W, 98 %\n2024/05/01 10:00:01.123, 0, 62.50 W, 98 %\n",
            r"rows of nvidia-smi without their header.*noheader",
        ),
        ("2024/05/01 10:00:00.123, 62.50\n", r"rows of nvidia-smi without their header.*noheader"),
        ("0, 2024/05/01 10:00:00.123, NVIDIA H100, 62.50\n", r"rows of nvidia-smi without their header.*noheader"),
        (
            "name, temperature.gpu, utilization.gpu [%]\nNVIDIA H100, 29, 10 %\n",
            r"no header with a column of times \(timestamp\).*--query-gpu=timestamp",
        ),
        (
            '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"DCGM_FI_DEV_GPU_UTIL",'
            '"gpu":"0"},"values":[[1714557600,"9"]]}]}}\n',
            r"it is JSON.*long form",
        ),
        ('\n[\n  {"gpu": 0, "power": {"socket_power": 90}}\n]\n', r"it is JSON.*long form"),
    ],
    ids=["no header", "no header or units", "no header, index first", "no times", "Prometheus", "amd-smi --json"],
)
def test_what_lacks_times_or_names_is_told_so(tmp_path, text, said):
    with pytest.raises(ExportError, match=said):
        read(tmp_path, text)


def test_a_table_saved_again_with_quotes_is_recognised(tmp_path):
    text = '"timestamp","index","power.draw [W]"\n"2024/05/01 10:00:00.000","0","62.50 W"\n'
    readings, values = read(tmp_path, text)
    assert readings.found == "nvidia-smi"
    assert values == {(0, "", "0", "power_w"): 62.5}
