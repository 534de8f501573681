"""Levels of detail: reduced datasets, windows for other viewers, towers of statistics over time, and the page that explores them.

Metrics keep their meaning at every level, from the whole run to one launch: sums, counts and covered times are exact integers, so a level
is the sum of the finer one (J. Labarta, "Levels of Detail in Performance Analysis", POP CoE, 2025).
"""
