"""Draws finished tables; computes no statistic.

What happens here beside drawing: an order for the eye, colours by rank of the value, and merging of neighbouring bins
into the columns that a screen can show, always by the largest value and always said beside the figure. What the results
claim stands in `findings`.

Imports run from left to right: `overview`, `pages` > `interactive` > `figures` > `drawing`.
"""
