"""Rows of the exports on their way into bins: sources, configurations, links of transfers to launches, targets.

Statistics of bins stand in `bins`.

Imports run from left to right: `dataset` > `targets` > `transfers` > `host_configurations` > `configurations` >
`group_quantiles`, `sources`, `transfer_links`.
"""
