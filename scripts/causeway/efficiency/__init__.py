"""Where the time goes: efficiency trees, idle time and overlap, collectives, clocks, stragglers, components of
variance, steps.

What varies from launch to launch stands in `variability`.

Imports run from left to right: `measure_efficiency`, `steps` > `ranks`, `trees` > `device_time`.
"""
