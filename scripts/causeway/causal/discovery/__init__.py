"""The search of one scope: mean and scale, configurations, rechecks, p-values, arrows and their verdicts.

One step of a selection stands in `selection`; what its result means in words, in `report`.

Imports run from left to right: `discover` > `equivalents`, `total_effects` > `arrows` >
`between_configurations`, `beyond_single_columns`, `cluster_representative`, `effects_of_time`, `lag_recheck`,
`leakage_recheck`, `mean_and_scale`, `scope_p_value`, `verdicts`.
"""
