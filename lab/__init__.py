"""Studies that judge Causeway, and what they need: no analysis imports any of it, and no wheel holds it.

What analyses a run stands in `causeway`. The README beside this file says what each folder is for.

Imports run from left to right: `parallel_job`, `step_job` > `scaling`, `site_telemetry`, `trace_file`, `validation`.
"""
