"""The pyramid: statistics of cells of time, each level the sum of the finer one, built in bounded memory.

What is shown of it stands in `explorer`.

Imports run from left to right: `build` > `custom_metrics`, `sampled_metrics` > `expressions`, `pyramid`,
`side_tables` > `level`, `ordered_rows` > `busy_time`, `merging` > `cells` > `sketch`.
"""
