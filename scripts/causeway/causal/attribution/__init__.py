"""Questions put to a fitted structural model with dowhy's gcm: why a launch was slow, why two runs differ.

dowhy is imported inside functions alone: it takes seconds, and is not there on every Python.

Imports run from left to right: `run_changes` > `slow_launches` > `kernel_rows`, `mechanisms`.
"""
