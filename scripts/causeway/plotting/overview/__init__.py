"""The overview, one module per section; those of device time and of variability in their own folders.

Figures stand in `figures`.

Imports run from left to right: `overview` > `device_time`, `findings_list`, `inputs` > `variability` > `comparisons`,
`datasets`, `methods`.
"""
