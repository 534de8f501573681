"""The scaling study: simulated tables of a chosen size, the MPI program timed on them over rank counts, and a model of
the times.

The program itself stands in `variability`.

Imports run from left to right: `study` > `simulated_dataset`, `timed_runs`, `model`, `plan`.
"""
