"""Each run of a comparison by itself: its launches and calls of operators, measured; which kernel is which.

What two runs differ in stands in `comparison`.

Imports run from left to right: `operator_calls`, `run_totals` > `counter_means`, `launches`, `matching` >
`launch_inputs`, `recordings`, `settings`.
"""
