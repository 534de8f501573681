"""Why devices wait: the reason of every idle nanosecond, the critical path of each rank, and what a change would save.

How much time is idle, and what it costs in ratios, stands in `efficiency`.

Imports run from left to right: `explain_waiting`, `find_critical_paths`, `replay_what_ifs` > `idle`, `replay` >
`path` > `graph`, `steps_by_rank`, `taken_gpus` > `dependencies`.
"""
