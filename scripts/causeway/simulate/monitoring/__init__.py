"""What the monitoring of a site would have recorded beside a simulated run.

What a profiler samples itself stands in `device_metrics`.

Imports run from left to right: `site_telemetry`.
"""
