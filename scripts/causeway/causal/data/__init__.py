"""What is searched: features of launches, scopes, observations, deviations; the records of an outcome and their file.

Columns are prepared in `preparation`.

Imports run from left to right: `assemble_features` > `features`, `outcome_file` > `operator_context`, `step_context` >
`deviation`, `launch_context`, `outcome`, `scopes` > `counter_names`, `feature_labels`, `feature_roles`, `in_flight`,
`observations`, `six_digits`.
"""
