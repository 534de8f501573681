"""Columns made fit for the search: categories, clusters, target leakage, scales of counters, and their states.

A target that is a difference is freed of what defines it.

Rechecks after the search stand in `discovery`.

Imports run from left to right: `prepare` > `leak_attribution` > `known_relations`, `prepared`, `target_leakage` >
`exact_images` > `categorical`, `numeric_columns`.
"""
