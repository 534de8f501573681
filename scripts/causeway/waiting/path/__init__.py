"""The critical path: what each nanosecond of a rank's time, from its first to its last work, had to wait for.

What a change would be worth stands in `replay`.

Imports run from left to right: `path_table` > `critical_path` > `walk`.
"""
