"""Levels of detail: reduced datasets, statistics over time at every width, windows for other viewers, and the explorer.

Metrics keep their meaning at every level, from the whole run to one launch: sums, counts and covered times are exact
integers, so a level is the sum of the finer one (J. Labarta, "Levels of Detail in Performance Analysis", POP CoE,
2025). Bins of the targets stand in `variability`.

Imports run from left to right: `explorer` > `pyramid`, `windows` > `filters`.
"""
