"""States of devices and host threads, measured in one pass over ordered events.

Ratios of these times stand in `trees`.

Imports run from left to right: `shared_gpus` > `compared_time` > `measure` > `regions`, `launch_shapes` >
`event_streams` > `launch_sums`, `sweep` > `states`.
"""
