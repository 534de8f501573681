"""A simulated job with a course of its own: which steps of a training job are slow, and why.

Runs whose launches vary because of what runs beside them stand one folder above.

Imports run from left to right: `step_job` > `trace_file`.
"""
