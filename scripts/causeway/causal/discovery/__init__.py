"""The search of one scope: mean and scale, configurations, rechecks, p-values, arrows and their verdicts.

One step of a selection stands in `selection`; what its result means in words, in `report`.

Imports run from left to right: `discover` > `mean_and_scale` > `arrows` > `between_configurations`,
`leakage_recheck`.
"""
