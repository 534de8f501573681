"""Simulated traces and counter captures with planted causes, in the vendors' formats, on which Causeway is tested.

Equal scenario and seed give equal bytes. Tables with known causes that never were an export stand in `lab/validation`.

Imports run from left to right: `__main__` > `runs` > `kineto_json`, `truth` > `nsys_sqlite` >
`demo`, `ncu_csv`, `schedule` > `device_metrics`, `planted_effects`, `rank_tables` > `counters`, `scenario` >
`stream_events`, `random_numbers`, `nsys_schema`.
"""
