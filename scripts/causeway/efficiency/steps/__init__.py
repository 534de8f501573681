"""Steps: the iterations of a run, from annotations or from repeats of the launches; their parts, and why some are slow.

States of devices, of which the parts are sums, are measured in `device_time`.

Imports run from left to right: `find_steps` > `step_causes` > `step_parts` > `annotated`, `repeats` >
`launch_moments`, `rank_steps`.
"""
