"""Sections on what devices do over time: time lost, reasons of idle time, slow steps, late ranks.

Imports run from left to right: `collectives_by_size`, `idle_reasons`, `late_ranks`, `limits`,
`operator_times`, `slow_steps`, `time_lost` > `heat_map`, `managed_memory`.
"""
