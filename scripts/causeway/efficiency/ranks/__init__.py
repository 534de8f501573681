"""Ranks compared: collectives, clocks aligned by them, stragglers and why they are late, components of variance.

Times of one device stand in `device_time`.

Imports run from left to right: `collective_sizes`, `find_stragglers` > `exchanges`, `stragglers` > `slow_transfers`,
`clock_alignment`, `lateness_causes` > `collectives` > `kernel_sequences` > `common_events`, `rank_collectives`,
`rank_roles`, `variance_components` > `levels_of_blocks` > `duration_cells`.
"""
