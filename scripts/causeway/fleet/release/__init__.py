"""Releases: noisy sums above a threshold, and the designer's estimates from them.

How reports are protected before stands in `protection`.

Imports run from left to right: `designer` > `aggregate`, `count_intervals`, `estimates` > `cell_noise`, `release`.
"""
