"""Simulated jobs with a course of their own: which steps of a training job are slow, and why;
ranks that do different work.

Runs whose launches vary because of what runs beside them stand one folder above.

Imports run from left to right: `parallel_job`, `step_job` > `trace_file`.
"""
