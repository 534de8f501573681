"""What is searched: features of launches, scopes, observations, deviations; the records of an outcome and their file.

Columns are prepared in `preparation`.

Imports run from left to right: `features` > `operator_context` >
`launch_context`, `outcome`, `scopes` > `feature_names`, `in_flight`, `observations`.
"""
