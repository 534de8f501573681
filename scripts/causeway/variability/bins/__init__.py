"""Statistics of slices of time, their ranking, and the rows of chosen bins, in passes over the exports.

Where rows come from stands in `rows`.

Imports run from left to right: `kept` > `passes` > `summaries` > `ranking` > `bins`.
"""
