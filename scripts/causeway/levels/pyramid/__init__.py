"""The pyramid: statistics of cells of time, each level the sum of the finer one, built in bounded memory.

What is shown of it stands in `explorer`.

Imports run from left to right: `build` > `custom_metrics`, `level_files`, `sampled_metrics` >
`launch_columns`, `pyramid`, `side_tables` > `level`, `ordered_rows`, `stream_numbers` > `busy_time`, `merging` >
`cells` > `expressions`, `sketch`.
"""
