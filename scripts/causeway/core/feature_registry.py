"""What is known of every feature that may be a cause: tier, group, unit, the words for it, what one can do about it.

`config/features.yaml` has a record of each column that `causal.data.features` names itself; `sampled_metric` and
`counter` describe those that their exports name. Whoever has a name, and the group that stands beside it in a table,
asks `record_of`.
"""

import re
from dataclasses import dataclass

from causeway.core.codes import NO_OTHER
from causeway.core.files.yaml_files import read_yaml
from causeway.core.formatting import difference, elided, setting_value
from causeway.core.installation import workflow_folder
from causeway.core.schemas import Row

MECHANISM = "mechanism"
"""The part of a change that is the kernel's own."""
TIERS = {"launch": "launch configuration", "context": "context of the launch", "counter": "counters"}
"""Tiers in causal order with their label: what was chosen before the launch, what was so when it began, what it did."""


@dataclass(frozen=True, kw_only=True)
class FeatureRecord:
    """One feature.

    Attributes
    ----------
    name : str
        Column of `features.parquet`.
    tier : str
        A key of `TIERS`.
    group : str
        Kind of feature, which stands beside it in graphs and tables.
    unit : str
        `bytes`, `ns`, `Hz`, `ratio` (0 to 1), `W` or that of a counter; empty for counts and categories.
    label : str
        What sentences call it.
    headline : str
        What headlines call it, where the label is long or names what only the documentation explains.
    subject : str
        Subject of a sentence on its effect: on larger values, plural; of a category on one level, which takes the place
        of `{}`, singular. Empty: sentences take the label.
    at_zero : str
        How sentences call setting it to zero; empty where zero is a value like any other, not that there is none.
    everywhere : str
        Of a category: how sentences call setting all launches to one level, which takes the place of `{}`.
    counted : str
        What has the values, where a sentence names that instead: "Blocks of 128 instead of 256".
    suggestion : str
        What to try about it: a key of `findings.suggestions.CAUSES`.
    is_category : bool
        Its values are names.
    is_lever : bool
        One can set it. A moment cannot be set: it stands for whatever changes with time.
    is_control : bool
        It takes part in the search so that others are not taken for it, and is never reported as a cause.
    table : str
        Table of an export that it is computed from, or the dataset's `steps` or `configuration_summary` (exact means):
        without that table there is no such column. Empty: it stands beside the kept launch already.
    copy_kinds : tuple of int
        CUPTI's kinds of the copies whose bytes it counts.
    """

    name: str
    tier: str
    group: str
    label: str
    suggestion: str
    unit: str = ""
    headline: str = ""
    subject: str = ""
    at_zero: str = ""
    everywhere: str = ""
    counted: str = ""
    is_category: bool = False
    is_lever: bool = True
    is_control: bool = False
    table: str = ""
    copy_kinds: tuple[int, ...] = ()


FILE = workflow_folder() / "config" / "features.yaml"


def _features() -> tuple[FeatureRecord, ...]:
    """Return the records of the table: what stands above a section's features holds for all that do not say otherwise.

    Raises
    ------
    TypeError
        If a feature lacks a field that each has, or has one that there is not.
    """
    records = []
    for section in read_yaml(FILE):
        features = section.pop("features")
        for name, facts in features.items():
            kinds = {"copy_kinds": tuple(facts.pop("copy_kinds", ()))}
            records.append(FeatureRecord(**{"name": name, **section, **facts, **kinds}))
    return tuple(records)


FEATURES = _features()
"""All features with a name of their own, in the order in which they stand in `features.parquet`."""
FEATURE_BY_NAME = {feature.name: feature for feature in FEATURES}
NAMES_A_LAUNCH = ("launched_after", "launched_second_after", "kernel_in_flight")
"""Features whose levels are other launches, by the id of their kernel and their grid."""
LONGEST_NAME = 40
"""Characters of a kernel's name in a headline."""
LONGEST_FEATURE = 64
"""Characters of a feature's name: counters of one family differ in their middle."""
LONGEST_LAUNCHES = 100
"""Characters of launches by their numbers in the step."""
LONGEST_LEVEL = 30
"""Characters of a level of a category."""
ID_DIGITS = re.compile(r"-[0-9a-f]{10}(?= |$)")
"""The digits at the end of a kernel's id, which tell kernels of one short name apart."""
IN_STEP = re.compile(r"(launch \d+) of configuration \d+ (\([^()]*\))")
"""A launch in a step: its number, and its grid and block, by which a reader knows the configuration."""
DEVICE_METRICS = "device metrics"
"""Group of the metrics that the profiler samples on a device."""
SAMPLED_UNITS = {
    "_celsius": "°C", "_hz": "Hz", "_ratio": "ratio", "_bytes": "bytes", "_ns": "ns", "_w": "W", "_percent": "percent",
}  # fmt: skip
"""Units of sampled metrics by the end of their name."""
ACRONYMS = {word.lower(): word for word in "GPC SYS SM SMs HW SW GPU DRAM PCIe NVLink RX TX L1 L2 HBM".split()}
"""Words in the names of sampled metrics that are written in capitals."""
COUNTERS = "counters"
"""Group of a counter that no column map gives one, and of a column of a plain table."""
MISSING_VALUES = "missing values"
"""Group of what says whether a column of a table, or a counter, is recorded."""
MISSING_SUFFIX = "_missing"
"""What its name ends with, behind that column's."""
COUNTER_GROUPS = {"memory system activity": "memory_accesses"} | dict.fromkeys(
    ("warp stalls", "temporal characteristics", COUNTERS), "counter"
)
"""Groups of counters (of `config/columns/counters.yaml`) with the key of what to try."""


def sampled_metric(name: str) -> FeatureRecord:
    """Return the record of a sampled device metric.

    >>> sampled_metric("sms_active_ratio").label, sampled_metric("gpc_clock_hz").unit
    ('SMs active', 'Hz')
    """
    suffix = next((suffix for suffix in SAMPLED_UNITS if name.endswith(suffix)), "")
    label = " ".join(ACRONYMS.get(word, word) for word in name.removesuffix(suffix).split("_"))
    return FeatureRecord(
        name=name,
        tier="context",
        group=DEVICE_METRICS,
        unit=SAMPLED_UNITS.get(suffix, ""),
        label=label,
        suggestion="device_metric",
    )


def counter(name: str, group: str = COUNTERS, unit: str = "", is_category: bool = False) -> FeatureRecord:
    """Return the record of a counter or of a column of a table: its label is the name that its user knows."""
    return FeatureRecord(
        name=name,
        tier="counter",
        group=group,
        unit=unit,
        label=name,
        suggestion=COUNTER_GROUPS.get(group, "experiment"),
        is_category=is_category,
    )


def whether_recorded(name: str) -> FeatureRecord:
    """Return the record of what says whether a column is recorded: nobody sets that.

    >>> whether_recorded("link_util_missing").label
    'whether link_util is recorded'
    """
    column = name.removesuffix(MISSING_SUFFIX)
    return FeatureRecord(
        name=name,
        tier="counter",
        group=MISSING_VALUES,
        label=f"whether {column} is recorded",
        headline=column,
        subject="A {} " + column.replace("{", "{{").replace("}", "}}"),
        suggestion="experiment",
        is_category=True,
        is_lever=False,
    )


def record_of(name: str, group: str = "") -> FeatureRecord:
    """Return the record of a feature by its name and the group that stands beside it in a table or graph."""
    if name in FEATURE_BY_NAME:
        return FEATURE_BY_NAME[name]
    if group == MISSING_VALUES:
        return whether_recorded(name)
    return sampled_metric(name) if group == DEVICE_METRICS else counter(name, group)


def feature_words(name: str, group: str = "") -> str:
    """Return what headlines, pages and figures call a feature; a counter or column keeps its own name, elided.

    >>> feature_words("idle_before_ns"), feature_words("dram_bytes")
    ('idle time before the start', 'dram_bytes')
    >>> feature_words("link_util_missing", "missing values")
    'whether link_util is recorded'
    """
    record = record_of(name, group)
    return elided(record.label if group == MISSING_VALUES else record.headline or record.label, LONGEST_FEATURE)


def came_with(part: Row) -> str:
    """Return what a part of a change came with: a row of `parts` of the attributions of `comparison.json`."""
    feature = elided(", ".join(map(feature_words, part["feature"].split(", "))), LONGEST_FEATURE)
    if part["kind"] == MECHANISM:
        return "is the kernel itself"
    if part["kind"] == "either":
        return f"is {feature} or the kernel itself, not told apart"
    if part["before"] is None:
        return f"came with another mix of {feature}"
    before, after = (setting_value(part[end], record_of(part["feature"]).unit) for end in ("before", "after"))
    return f"came with {feature} (mean {before} to {after})"


def attribution_sentence(kernel: Row) -> str:
    """Return what a kernel's change came with, a row of the attributions of `comparison.json`: its clear parts, the
    largest first, and the rest.
    """
    clear = sorted((part for part in kernel["parts"] if part["is_clear"]), key=lambda part: -abs(part["mean_ns"]))
    words = []
    for part in clear:
        ends = f"{difference(part['mean_ns'])} [{difference(part['mean_low_ns'])}, {difference(part['mean_high_ns'])}]"
        words.append(f"{ends} {came_with(part)}")
    rest = kernel["mean_ns"] - sum(part["mean_ns"] for part in clear)
    words.append(f"{difference(rest)} is unexplained")
    return f"Of {difference(kernel['mean_ns'])} a launch, {', '.join(words)}."


def level_words(name: str, level: str) -> str:
    """Return a level of a category, elided: launches by the kernel's id without its digits, or by their number in the
    step, grid and block.

    >>> level_words("launched_after", "sm80-gemm-bfa03f4455 (grid 16)")
    'sm80-gemm (grid 16)'
    """
    if IN_STEP.match(level):
        return elided(IN_STEP.sub(r"\1 in the step \2", level).replace(" x ", "×"), LONGEST_LAUNCHES)
    if name in NAMES_A_LAUNCH:
        return elided(ID_DIGITS.sub("", level).replace(" x ", "×"), LONGEST_NAME)
    return elided(level, LONGEST_LEVEL)


def cause_words(name: str, group: str = "", level: str | None = None) -> str:
    """Return what they call a feature, of a category with its level.

    >>> cause_words("launch_in_step", level="launch 4 of configuration 7 (grid 2 x 66, block 384), outside of steps")
    'launch 4 in the step (grid 2×66, block 384), outside of steps'
    >>> cause_words("link_util_missing", "missing values", "missing")
    'link_util = missing'
    """
    if not level:
        return feature_words(name, group)
    if IN_STEP.match(level):
        return level_words(name, level)
    record = record_of(name, group)
    words = elided(record.headline or record.label, LONGEST_FEATURE)
    if level == NO_OTHER and name == "kernel_in_flight":
        return f"no other {words}"
    return f"{words} = {level_words(name, level)}"
