"""Tables of the causal analysis: the features of launches, and what was found about each cause."""

import pyarrow as pa

from causeway.core.schemas.column_types import F64, FLAG, I64, TEXT, U32, column, columns
from causeway.core.vocabulary import UNEXPLAINED

CHANGES = " ".join(
    f"{what}_change_{end}" for what in ("mean", "p50", "p99", "spread") for end in ("percent", "low", "high")
)
CAUSAL_TABLES: dict[str, pa.Schema] = {
    # the columns of `kept`, then one column per feature
    "features": pa.schema([]),
    "contributions": pa.schema(
        [
            column("feature", TEXT),
            column("group", TEXT, nullable=True),
            column("members", pa.list_(TEXT)),
            column("stage", TEXT),
            column("sign", TEXT),
            column("level", TEXT, nullable=True),
            *columns("effect effect_low effect_high", F64, "standard deviations of the target", nullable=True),
            # of the variance of the target, for most the absolute deviation; with the unexplained rest 100
            *columns("contribution_percent contribution_low contribution_high", F64, "percent", nullable=True),
            *columns("q_value robustness", F64, nullable=True),
            column("verdict", TEXT),
            # what the sign refers to: "target", or "value", the measured value itself
            column("sign_of", TEXT, nullable=True),
            *columns(
                "value_effect value_effect_low value_effect_high",
                F64,
                "standard deviations of the value",
                nullable=True,
            ),
            column("sentence", TEXT, nullable=True),  # the cause in words; null for the unexplained rest
            # lever, exposure, mediator, clock or lag; null for the unexplained rest
            column("role", TEXT, nullable=True),
            # the duration with the cause at its 90th instead of its 10th percentile; 90 % intervals; those that
            # `of_first` names are in percent of the duration at the 10th instead
            *columns(CHANGES, F64, "percent of the observed duration", nullable=True),
            *columns("cost_ns cost_low cost_high", F64, "ns of GPU time over the run", nullable=True),
            column("launches", I64, nullable=True),  # of configurations in which the cause varies
            column("determines_time", FLAG, nullable=True),  # alone it explains more than 99 % of the time
            column("through", TEXT, nullable=True),  # the mediators through which a lever or exposure acts
            column("monotone", FLAG, nullable=True),  # false where the duration falls and rises with the cause
            # of the variance of the measured value within configurations; with the unexplained rest 100
            *columns("variance_percent variance_low variance_high", F64, "percent", nullable=True),
            # of `mean_change`, `p50_change`, `p99_change`, `spread_change` those of another base
            column("of_first", pa.list_(TEXT), nullable=True),
            # of a scope of several kernels: those in which the cause varies, as a share of all, which no share of the
            # variance exceeds; and of the dataset's variance within configurations, in the value's own unit
            *columns("kernels_percent kernels_variance_percent", F64, "percent", nullable=True),
            # how dowhy identifies the total effect on the measured value, the columns that it holds fixed, and those
            # for the direct effect where mediators stand between; null where dowhy is not installed
            column("estimand", TEXT, nullable=True),
            *(column(name, pa.list_(TEXT), nullable=True) for name in ("adjustment", "direct_adjustment")),
            # of one kernel the change of the mean by dowhy's linear regression of the launches near both levels, with a
            # 90 % interval that takes launches for independent; whether it agrees with `mean_change`
            *columns(
                "second_change_percent second_change_low second_change_high",
                F64,
                "percent of the mean of the configuration",
                nullable=True,
            ),
            column("estimates_agree", FLAG, nullable=True),
        ]
    ),
    # the rows behind a graph, then one column per node: what tells a launch apart (as in `features`), its weight, its
    # block of dependent launches, the code of its configuration
    "model": pa.schema(
        [
            *columns("launch_rank launch_index", I64),
            column("launch_start_ns", I64, "ns", nullable=True),
            column("launch_weight", F64),
            *columns("launch_block launch_configuration", I64),
        ]
    ),
    "refutations": pa.schema(
        [
            *columns("feature refuter", TEXT),
            *columns("effect refuted_effect p_value", F64, nullable=True),
            column("passed", FLAG, nullable=True),
            column("note", TEXT, nullable=True),
        ]
    ),
    "whatif": pa.schema(
        [
            *columns("feature from to", TEXT),
            *columns("change_percent change_low change_high", F64, "percent", nullable=True),
            *columns("verdict reason", TEXT, nullable=True),
            # name of the user-specified intervention (`causes: what_if`); null for the built-in ones
            column("asked", TEXT, nullable=True),
            column("sentence", TEXT, nullable=True),
            # of the duration, with 90 % intervals; saved is positive where GPU time is won
            *columns("mean_change_percent mean_change_low mean_change_high", F64, "percent", nullable=True),
            *columns("p99_change_percent p99_change_low p99_change_high", F64, "percent", nullable=True),
            *columns("saved_ns saved_low saved_high", F64, "ns of GPU time over the run", nullable=True),
        ]
    ),
    # one row per replayed what-if of a kernel: what it does to the time from the first work of the run to the end of
    # the last, with a 90 % interval
    "replayed_what_ifs": pa.schema(
        [
            column("kernel", TEXT),
            column("what_if", I64),  # row of the kernel's `whatif.parquet`, from 0
            *columns("feature to", TEXT),
            *columns("time_ns predicted_ns", I64, "ns"),
            *columns("run_change_percent run_change_low run_change_high", F64, "percent"),
            # what is saved over the number of steps; null where none were found
            column("saved_per_step_ns", F64, "ns", nullable=True),
            # kind with the longest time on the critical path then, on the rank that ends last
            column("limited_by", TEXT, nullable=True),
        ]
    ),
    # the slowest launches of a kernel (of the dataset: of all kernels), each with a row per cause, the largest first,
    # and one of what no cause explains: `attributed_ns` of a launch sums to its `deviation_ns` from the mean of its
    # configuration; `position` counts launches from 1, `value` is the cause's, in words
    "slow_launches": pa.schema(
        [
            column("kernel", TEXT),
            column("position", I64),
            column("rank", U32),
            column("launch", I64),
            column("start_ns", I64, "ns", nullable=True),
            *columns("duration_ns deviation_ns", I64, "ns"),
            column("feature", TEXT),
            column("value", TEXT, nullable=True),
            column("attributed_ns", I64, "ns"),
            column(UNEXPLAINED, FLAG),
        ]
    ),
    # one row per cause that is supported in a kernel, what costs most GPU time first; intervals are 90 %
    "across_kernels": pa.schema(
        [
            column("feature", TEXT),
            column("level", TEXT, nullable=True),
            column("kernels", pa.list_(TEXT)),
            column("searched", I64),  # kernels, all but the refused ones
            *columns("mean_change_percent mean_change_low mean_change_high", F64, "percent", nullable=True),
            *columns("smallest_percent largest_percent between_std", F64, "percent", nullable=True),
            column("i_squared", F64, "percent", nullable=True),
            # of the dataset's variance within configurations, in the value's own unit squared
            column("variance_percent", F64, "percent", nullable=True),
            *columns("cost_ns cost_low cost_high", F64, "ns of GPU time over the run", nullable=True),
            column("sentence", TEXT),
        ]
    ),
    # with `causes: as_published`: the arrows of the graph of each rank and scope as arXiv 2510.18300 draws it, the
    # largest first; of a graph without any a row without a feature
    "as_published": pa.schema(
        [
            column("rank", U32),
            column("scope", TEXT),
            column("launches", I64),  # of the most variable bins
            column("feature", TEXT, nullable=True),
            column("slope", F64, "standard deviations of the target", nullable=True),
            column("contribution_percent", F64, "percent", nullable=True),
        ]
    ),
}
