"""Effects of the causes that were found: what they do to the time, contributions, signs, interventions.

Whether a cause is one is decided in `discovery`.

Imports run from left to right: `unclear_means`, `user_interventions` > `interventions` > `intervention_values`,
`share_method`, `signs` > `contributions`, `time_effects` > `location_scale`, `scope_times` > `evidence`,
`tail_check`, `time_model` > `cause_columns`.
"""
