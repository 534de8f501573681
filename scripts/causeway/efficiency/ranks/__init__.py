"""Ranks compared: collectives, clocks aligned by them, stragglers and why they are late, components of variance.

Times of one device stand in `device_time`.

Imports run from left to right: `collective_sizes`, `find_stragglers` > `exchanges`, `lateness_causes`, `rank_roles`,
`stragglers`, `variance_components` > `clock_alignment`, `duration_cells` > `collectives` > `common_events`,
`rank_collectives`.
"""
