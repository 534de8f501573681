"""Columns made fit for the search: categories, clusters, target leakage, scales of counters, and their states.

A target that is a difference is freed of what defines it.

Rechecks after the search stand in `discovery`.

Imports run from left to right: `definition`, `places`, `prepare`, `program_order` > `known_relations` >
`categorical`, `leak_attribution`, `prepared`, `target_leakage` > `affine_images`, `repeated_values` > `exact_images`,
`numeric_columns` > `counter_scale`.
"""
