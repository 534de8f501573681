"""Telemetry that a site records anyway (nvidia-smi, DCGM, rocm-smi, amd-smi, LDMS), brought onto a dataset's time line.

Metrics that a profiler samples itself stand in the exports and belong to `readers`.

Imports run from left to right: `match_telemetry` > `telemetry_files`, `node_clocks` > `delimited_text`, `device_rows`,
`exporter_dump`, `busy_time_cells`, `clock_skew`, `device_matching` > `readings` > `metric_names` > `text_values`.
"""
