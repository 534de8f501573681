"""The overview, one module for each of its sections.

Figures stand in `figures`.

Imports run from left to right: `overview` > `claims`, `inputs`, `methods`, `ranks_and_steps`,
`what_if` > `time_lost` > `device_tables`, `heat_map`, `what_varies`.
"""
