"""States of devices and host threads, measured in one pass over ordered events.

Ratios of these times stand in `trees`.

Imports run from left to right: `shared_gpus` > `compared_time` > `measure` > `launch_shapes`, `migrations`, `regions` >
`event_streams` > `launch_sums`, `sweep` > `states`.
"""
