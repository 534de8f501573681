"""Effects of the causes that were found: contributions, signs, counterfactuals and interventions.

Whether a cause is one is decided in `discovery`.

Imports run from left to right: `user_interventions` > `interventions`, `share_method`, `signs` > `contributions`,
`counterfactuals`, `intervention_values` > `arrow_strength`, `evidence`, `location_scale`.
"""
