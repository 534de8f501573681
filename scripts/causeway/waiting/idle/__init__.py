"""One pass over an export: gaps of its devices, what its host threads did meanwhile, and the sums by reason.

What becomes of the sums stands in `explain_waiting`.

Imports run from left to right: `export_pass` > `event_waits`, `host_timeline`, `named_events`, `taken_time` >
`python_functions` > `activities`, `gaps` > `reason_words`, `stack_sweep`,
`standard_library`.
"""
