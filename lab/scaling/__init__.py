"""The scaling study: simulated tables of a chosen size, the MPI program timed on them over rank counts, and a model of
the times.

The program itself stands in `causeway.variability`.

Imports run from left to right: `figure`, `study` > `simulated_dataset`, `timed_runs`, `model`, `plan`.
"""
