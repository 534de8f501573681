"""Rows of the exports on their way into bins: sources, configurations, links of transfers to launches, targets.

Statistics of bins stand in `bins`.

Imports run from left to right: `dataset` > `targets` > `configurations`, `group_quantiles`, `transfers` > `sources`,
`transfer_links`.
"""
