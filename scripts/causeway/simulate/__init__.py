"""Simulated traces and counter captures with planted causes, in the vendors' formats, on which Causeway is tested.

Equal scenario and seed give equal bytes. Tables with known causes that never were an export stand in `lab/validation`.

Imports run from left to right: `__main__` > `runs` > `counters`, `kineto_json`, `truth` > `nsys_sqlite` >
`rank_export`, `schedule` > `device_metrics`, `rank_tables` > `scenario`, `stream_events` > `random_numbers`.
"""
