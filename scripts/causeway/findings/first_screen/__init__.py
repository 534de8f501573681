"""The first screen of a run: what a reader sees in ten seconds, the same on the page, in the terminal and in JSON.

`facts` are typed numbers that are finished when they are made; `plan` decides which are said, and in which order;
`words` renders each once.

Imports run from left to right: `plan` > `advice`, `compared` > `facts`, `words` >
`compared_kernels`, `counted_work`, `device_differences`, `late_in_mpi`, `table_rows` > `losses`, `outliers`, `work` >
`first_steps`, `step_edges` > `run_facts`.
"""
