"""Figures of what devices do over time: time lost, reasons of idle time, steps.

Imports run from left to right: `lost_time`, `step_waterfall`, `steps` > `waiting`.
"""
