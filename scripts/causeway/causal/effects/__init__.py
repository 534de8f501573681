"""Effects of the causes that were found: what they do to the time, shares, interventions.

Whether a cause is one is decided in `discovery`.

Imports run from left to right: `unclear_means`, `user_interventions` > `interventions` > `intervention_values`,
`shares` > `time_effects` > `tails` > `levels`, `scope_times` > `kernel_times` > `evidence`, `nearby_launches`,
`time_model` > `cause_columns`.
"""
