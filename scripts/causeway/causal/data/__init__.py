"""What is searched: features of launches, scopes, observations, deviations; the records of an outcome and their file.

Columns are prepared in `preparation`.

Imports run from left to right: `assemble_features` > `features` > `operator_context`, `step_context` >
`launch_context`, `outcome`, `scopes` > `feature_names`, `in_flight`, `observations`, `six_digits`.
"""
