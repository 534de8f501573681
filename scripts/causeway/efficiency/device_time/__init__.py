"""States of devices and host threads, measured in one pass over ordered events.

Ratios of these times stand in `trees`.

Imports run from left to right: `launch_shapes`, `migrations`, `shared_gpus` > `compared_time` > `measure` >
`regions`, `sweep` > `event_streams` > `states`.
"""
