"""Efficiency trees: the formulas, the document of a dataset, and series of runs.

The times that they divide are measured in `device_time`.

Imports run from left to right: `assemble` > `copy_rates` > `trees`.
"""
