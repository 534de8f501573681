"""Causeway: from GPU profiler exports to the causes of runtime variability.

Ground floor: `errors`, `logs`, `schemas`, `tables`, `intervals`, `moments`, `ranks`. First floor, the wings: `readers`, `variability`,
`causal`, `plotting`, `simulate`, `quality`, `findings`. A wing imports the ground floor, never another wing.
"""
