"""Causes of runtime variability: features of launches, search, effects, verdicts, and the documents that hold them.

What varies is binned in `variability`; how often the method errs is measured in `lab/validation`.

Imports run from left to right: `search_causes` > `report` > `examination` > `models` > `discovery` >
`effects` > `preparation` > `selection` > `data` > `statistics`.
"""
