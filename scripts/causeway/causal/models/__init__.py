"""Each scope as a causal model that other programs read: its rows as a data frame, its graph as GML, for dowhy.

Such models also attribute: why a launch was slow, and why a kernel changed between two runs.

Imports run from left to right: `identification`, `log_time_estimator`, `run_changes` > `slow_launches` >
`kernel_rows` > `scope_model`.
"""
