"""Columns made fit for the search: categories, collinearity, target leakage, scales of counters, and their states.

Rechecks after the search stand in `discovery`.

Imports run from left to right: `prepare` > `categorical`, `collinearity`, `leak_attribution`, `prepared`,
`target_leakage` > `numeric_columns` > `counter_scale`.
"""
