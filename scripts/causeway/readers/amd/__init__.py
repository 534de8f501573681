"""AMD's tools: rocprof, rocprofv3, rocpd, rocprofiler-compute, rocm_profile_data.

PyTorch's traces of AMD devices stand in `pytorch`.

Imports run from left to right: `rocm_perfetto`, `rocpd`, `rocprof_compute`, `rocprof_v1`, `rocprofv3_csv`,
`rocprofv3_json`, `rpd` > `dispatch_tables`, `rocpd_tables` > `executions`, `trace_events` > `counter_passes`,
`kern_table`, `rocprofv3_ids` > `counter_values`.
"""
