"""Effects of the causes that were found: what they do to the time, shares, interventions.

Whether a cause is one is decided in `discovery`.

Imports run from left to right: `user_interventions` > `interventions` > `time_effects` > `scope_times` >
`kernel_times` > `time_model` > `cause_columns`, `evidence`, `levels`.
"""
