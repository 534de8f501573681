"""Why devices wait: the reason of every nanosecond in which a device ran neither a launch nor a transfer.

How much time is idle, and what it costs in ratios, stands in `efficiency`.

Imports run from left to right: `explain_waiting` > `idle`.
"""
