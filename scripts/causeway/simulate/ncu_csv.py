"""Write launches with counters as the CSV page of Nsight Compute (`ncu --csv`): one row per launch and metric."""

from pathlib import Path

from causeway.simulate.counters import LAUNCH, CounterLaunches, CounterScenario

HEADER = (
    "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,Section Name,Metric"
    " Name,Metric Unit,Metric Value,Rule Name,Rule Type,Rule Description,Estimated Speedup Type,Estimated Speedup"
).split(",")
"""The twenty columns of Nsight Compute 2024; a file of eighteen lacks the last two. Metric rows end after one empty
rule field.
"""
PROCESS = "33512"
PREAMBLE_LAUNCHES = 24
ADVICE = [
    "LaunchConfiguration",
    "INF",
    "The launch fills all multiprocessors, and the last wave of blocks is nearly full.",
]
"""A rule's row: complete, with empty metric fields, and its section under another name than in the metric rows."""


def value_text(value: float) -> str:
    """Return a number as Nsight Compute prints it in an English locale: at most two decimals, thousands separated by
    commas.
    """
    return f"{value:,.2f}".removesuffix(".00")


def write_ncu_csv(path: str | Path, scenario: CounterScenario, launches: CounterLaunches) -> int:
    """Write a capture; the file appears under its name when complete.

    Parameters
    ----------
    path : str or Path
    scenario : CounterScenario
    launches : CounterLaunches

    Returns
    -------
    int
        The number of rows below the header.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    order = sorted(launches.values, key=lambda key: (key[0] != "Command line profiler metrics", key[0], key[1].lower()))
    texts = {key: [value_text(value) for value in launches.values[key].tolist()] for key in order}
    heads = {
        (section, metric): _quoted([section, metric, launches.units[section, metric]]) for section, metric in order
    }
    rows = 0
    with open(partial, "w", encoding="utf-8", newline="") as handle:
        handle.write(f"==PROF== Connected to process {PROCESS} (/opt/app/bin/simulated)\n")
        for launch in range(min(PREAMBLE_LAUNCHES, len(launches.kernel))):
            name = (
                scenario.kernels[launches.kernel[launch]]
                .name.split("(")[0]
                .split("<")[0]
                .split("::")[-1]
                .removeprefix("void ")
            )
            handle.write(f'==PROF== Profiling "{name}" - {launch}: 0%....50%....100% - 38 passes\n')
        handle.write(
            f"n, seed = {len(launches.kernel)}, {scenario.seed}\n==PROF== Disconnected from process {PROCESS}\n"
        )
        handle.write(_quoted(HEADER[: scenario.header]) + "\n")
        for launch, number in enumerate(launches.kernel):
            kernel = scenario.kernels[number]
            sizes = [f"({kernel.block}, 1, 1)", f"({kernel.grid}, 1, 1)"]
            prefix = _quoted(
                [str(launch), PROCESS, "simulated", "127.0.0.1", kernel.name, "1", "7", *sizes, "0", "9.0"]
            )
            lines = [f"{prefix},{heads[key]},{_quoted([texts[key][launch]])},\n" for key in order]
            lines.append(f"{prefix},{_quoted([LAUNCH, 'Function Cache Configuration', '', 'CachePreferNone'])},\n")
            lines.append(f"{prefix},{_quoted(['LaunchStats', '', '', '', *ADVICE, *[''] * (scenario.header - 18)])}\n")
            handle.write("".join(lines))
            rows += len(lines)
    partial.replace(path)
    return rows


def _quoted(fields: list[str]) -> str:
    """Return fields as Nsight Compute writes them, each in quotation marks."""
    return ",".join('"' + text.replace('"', '""') + '"' for text in fields)
