"""Columns made fit for the search: categories, clusters, target leakage, scales of counters, and their states.

A target that is a difference is freed of what defines it.

Rechecks after the search stand in `discovery`.

Imports run from left to right: `prepare` > `leak_attribution` > `affine_images`, `known_relations`, `prepared`,
`target_leakage` > `categorical`, `definition`, `exact_images`, `numeric_columns`.
"""
